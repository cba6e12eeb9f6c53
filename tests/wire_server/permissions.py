"""What a key may do, as the test declares it: nothing at all, not this model, or everything."""

from __future__ import annotations

from tests.wire_server.refusals import Declared, Json, error_body


class Permissions:
    """Errors that a test declares for every request, and for those of one model.

    `withheld` are models that the key is not offered: the list is without them, and a request for one is a 404.
    """

    def __init__(self) -> None:
        self.withheld: set[str] = set()
        self._of_key: tuple[int, Json] | None = None
        self._of_models: dict[str, tuple[int, Json]] = {}

    def deny_key(self, status: int, body: Json) -> None:
        """Answer every request so, the list of models included."""
        self._of_key = (status, body)

    def deny_model(self, model: str, status: int, body: Json) -> None:
        """Answer every request for this model so; the list still has it."""
        self._of_models[model] = (status, body)

    def clear(self) -> None:
        """Permit everything again."""
        self.withheld.clear()
        self._of_key = None
        self._of_models.clear()

    def check_key(self) -> None:
        """Raise Declared when the key is denied."""
        if self._of_key is not None:
            raise Declared(*self._of_key)

    def check_model(self, model: str) -> None:
        """Raise Declared when the key is denied this model."""
        if model in self.withheld:
            sentence = (
                f"models/{model} is not found for API version v1beta, or is not supported for generateContent. "
                "Call ModelService.ListModels to see the list of available models and their supported methods."
            )
            raise Declared(404, error_body(404, sentence))
        if model in self._of_models:
            raise Declared(*self._of_models[model])
