"""What a key may do, as the test declares it: nothing at all, not this model, or everything."""

from __future__ import annotations

from tests.wire_server.refusals import Declared, Json, error_body


class Permissions:
    """Errors that a test declares for every request, for those with one key, and for those of one model.

    `withheld` are models that the key is not offered: the list is without them, and a request for one is a 404.
    """

    def __init__(self) -> None:
        self.withheld: set[str] = set()
        self._of_keys: dict[str | None, tuple[int, Json]] = {}
        self._of_models: dict[str, tuple[int, Json]] = {}

    def deny_key(self, status: int, body: Json, key: str | None = None) -> None:
        """Answer every request with this key, or with any, so, the list of models included."""
        self._of_keys[key] = (status, body)

    def deny_model(self, model: str, status: int, body: Json) -> None:
        """Answer every request for this model so; the list still has it."""
        self._of_models[model] = (status, body)

    def clear(self) -> None:
        """Permit everything again."""
        self.withheld.clear()
        self._of_keys.clear()
        self._of_models.clear()

    def check_key(self, key: str) -> None:
        """Raise Declared when the key is denied."""
        denied = self._of_keys.get(key) or self._of_keys.get(None)
        if denied is not None:
            raise Declared(*denied)

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
