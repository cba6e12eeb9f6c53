from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from agent import OpenAISettings, Settings, SettingsError, TurnSettings
from tests.support.cases import each_case

KEY = "AIza" + "C4N4RY_" * 5


def test_without_variables_everything_has_its_default() -> None:
    settings = Settings.from_env({})
    assert settings.home.is_absolute()
    assert settings.home.name == "aivista"
    assert (settings.gemini_api_key, settings.gemini_base_url, settings.model_overrides) == (None, None, {})
    assert (settings.gemini_api_version, settings.text_timeout_s, settings.image_timeout_s) == ("v1beta", 60.0, 300.0)
    assert (settings.history_cache_ttl_s, settings.history_cache_limit_bytes) == (7200.0, 1 << 30)


def test_only_the_given_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("AIVISTA_HOME", "/elsewhere")
    settings = Settings.from_env({})
    assert settings.gemini_api_key is None
    assert settings.home != Path("/elsewhere")


def test_every_variable_is_read(tmp_path: Path) -> None:
    settings = Settings.from_env(
        {
            "AIVISTA_HOME": str(tmp_path),
            "GEMINI_API_KEY": f" {KEY}\n",
            "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1",
            "AIVISTA_GEMINI_API_VERSION": "v1",
            "AIVISTA_PROVIDER": "OpenAI",
            "AIVISTA_OPENAI_BASE_URL": "http://127.0.0.1:11434/v1/",
            "AIVISTA_OPENAI_API_KEY": " sk-words\n",
            "AIVISTA_OPENAI_TEXT_MODEL": "talker",
            "AIVISTA_OPENAI_IMAGE_MODEL": "painter",
            "AIVISTA_OPENAI_IMAGE_BASE_URL": "https://example.org:8000/v1",
            "AIVISTA_OPENAI_IMAGE_API_KEY": "sk-pictures",
            "AIVISTA_CATALOGUE": str(tmp_path / "models.toml"),
            "AIVISTA_MODEL_IMAGE_PRO": "my-model",
            "AIVISTA_MODEL_FLASH": "",
            "AIVISTA_TEXT_TIMEOUT_S": "1.5",
            "AIVISTA_IMAGE_TIMEOUT_S": "2",
            "AIVISTA_HISTORY_CACHE_TTL_S": "3",
            "AIVISTA_HISTORY_CACHE_MB": "0.5",
            "AIVISTA_CAP_DAY_USD": " 2.50 ",
            "AIVISTA_CAP_CONVERSATION_USD": "0",
        }
    )
    assert settings == Settings(
        home=tmp_path,
        gemini_api_key=SecretStr(KEY),
        gemini_base_url="http://127.0.0.1:1",
        gemini_api_version="v1",
        provider="openai",
        openai=OpenAISettings(
            base_url="http://127.0.0.1:11434/v1",
            api_key=SecretStr("sk-words"),
            text_model="talker",
            image_model="painter",
            image_base_url="https://example.org:8000/v1",
            image_api_key=SecretStr("sk-pictures"),
        ),
        catalogue_file=tmp_path / "models.toml",
        model_overrides={"image_pro": "my-model"},
        text_timeout_s=1.5,
        image_timeout_s=2.0,
        history_cache_ttl_s=3.0,
        history_cache_limit_bytes=1 << 19,
        cap_day_usd=2.5,
        cap_conversation_usd=0.0,
    )


@pytest.mark.parametrize(
    ("environ", "key"),
    [
        ({"GEMINI_API_KEY": "one"}, "one"),
        ({"GOOGLE_API_KEY": "two"}, "two"),
        ({"GEMINI_API_KEY": "one", "GOOGLE_API_KEY": "two"}, "two"),
        ({"GEMINI_API_KEY": "one", "GOOGLE_API_KEY": ""}, "one"),
        ({"GEMINI_API_KEY": "  "}, None),
    ],
)
def test_googles_name_of_the_key_wins_as_in_its_sdk(environ: dict[str, str], key: str | None) -> None:
    found = Settings.from_env(environ).gemini_api_key
    assert (found.get_secret_value() if found else None) == key


SERVER = {"AIVISTA_OPENAI_BASE_URL": "http://127.0.0.1:11434/v1", "AIVISTA_OPENAI_TEXT_MODEL": "talker"}


def test_a_server_of_ones_own_needs_an_address_and_a_model() -> None:
    settings = Settings.from_env(SERVER)
    assert settings.openai == OpenAISettings(base_url="http://127.0.0.1:11434/v1", text_model="talker")
    assert settings.provider is None
    assert Settings.from_env({"AIVISTA_OPENAI_TEXT_MODEL": "talker"}).openai is None


@each_case(
    ("environ", "name"),
    [
        ({"AIVISTA_PROVIDER": "llama"}, "AIVISTA_PROVIDER"),
        ({"AIVISTA_PROVIDER": "openai"}, "AIVISTA_OPENAI_BASE_URL"),
        ({"AIVISTA_OPENAI_BASE_URL": "http://127.0.0.1/v1"}, "AIVISTA_OPENAI_TEXT_MODEL"),
        ({**SERVER, "AIVISTA_OPENAI_BASE_URL": "127.0.0.1:11434/v1"}, "AIVISTA_OPENAI_BASE_URL"),
        ({**SERVER, "AIVISTA_OPENAI_BASE_URL": "ftp://127.0.0.1/v1"}, "AIVISTA_OPENAI_BASE_URL"),
        ({**SERVER, "AIVISTA_OPENAI_BASE_URL": "http://[/v1"}, "AIVISTA_OPENAI_BASE_URL"),
        ({**SERVER, "AIVISTA_OPENAI_BASE_URL": "http://127.0.0.1:99999/v1"}, "AIVISTA_OPENAI_BASE_URL"),
        ({**SERVER, "AIVISTA_OPENAI_BASE_URL": "http://127.0.0.1/v1?key=x"}, "AIVISTA_OPENAI_BASE_URL"),
        ({**SERVER, "AIVISTA_OPENAI_IMAGE_BASE_URL": "x"}, "AIVISTA_OPENAI_IMAGE_BASE_URL"),
        ({**SERVER, "AIVISTA_OPENAI_IMAGE_BASE_URL": "http://127.0.0.1/v1"}, "AIVISTA_OPENAI_IMAGE_MODEL"),
    ],
)
def test_what_is_wrong_about_a_server_names_its_variable(environ: dict[str, str], name: str) -> None:
    with pytest.raises(SettingsError) as error:
        Settings.from_env(environ)
    assert error.value.info.parameters["name"] == name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AIVISTA_OPENAI_BASE_URL", "http://me:C4N4RY@127.0.0.1/v1"),
        ("AIVISTA_OPENAI_BASE_URL", "http://C4N4RY@[/v1"),
        ("AIVISTA_OPENAI_API_KEY", "C4N4RY two"),
        ("AIVISTA_OPENAI_IMAGE_API_KEY", "C4N4RY\tkey"),
        ("AIVISTA_OPENAI_API_KEY", "C4N4RY密钥"),
    ],
)
def test_a_secret_in_the_wrong_place_is_not_quoted(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name) as error:
        Settings.from_env({**SERVER, name: value})
    assert "C4N4RY" not in str(error.value)
    assert "C4N4RY" not in repr(error.value.info)


def test_a_home_is_absolute_and_a_flag_wins_over_the_variable(tmp_path: Path) -> None:
    assert Settings.from_env({"AIVISTA_HOME": "here"}).home == Path(os.getcwd()) / "here"
    assert Settings.from_env({"AIVISTA_HOME": "~/pictures"}).home == Path.home() / "pictures"
    assert Settings.from_env({}, home=Path("~/pictures")).home == Path.home() / "pictures"
    assert Settings.from_env({"AIVISTA_HOME": "here"}, home=tmp_path).home == tmp_path
    nobodys = "~nobody-of-this-name/pictures"
    for name in ("AIVISTA_HOME", "AIVISTA_MCP_CONFIG"):
        with pytest.raises(SettingsError, match=f"{name} is '{nobodys}': there is no such home folder"):
            Settings.from_env({name: nobodys})
    with pytest.raises(SettingsError, match=f"home is '{nobodys}'"):
        Settings.from_env({}, home=Path(nobodys))


@pytest.mark.parametrize(("written", "size"), [("0.0000001", 1), ("1e305", 1 << 60)])
def test_a_size_is_never_too_small_or_too_large_to_be_kept(written: str, size: int) -> None:
    assert Settings.from_env({"AIVISTA_TRACE_MB": written}).trace_limit_bytes == size


TIMES = ("AIVISTA_TEXT_TIMEOUT_S", "AIVISTA_IMAGE_TIMEOUT_S", "AIVISTA_HISTORY_CACHE_TTL_S", "AIVISTA_HISTORY_CACHE_MB")
CAPS = ("AIVISTA_CAP_DAY_USD", "AIVISTA_CAP_CONVERSATION_USD")


@each_case(
    ("name", "value"),
    [
        *((name, value) for name in TIMES for value in ("soon", "-1", "0", "inf", "nan", "1e999")),
        *((name, value) for name in CAPS for value in ("much", "-1", "inf", "nan", "1e999", "$5")),
    ],
)
def test_a_number_that_makes_no_sense_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name) as error:
        Settings.from_env({name: value})
    assert value in str(error.value)
    assert name in TIMES or Settings.from_env({name: ""}) == Settings.from_env({})


@each_case(
    "fields",
    [
        {"number_of_images": 0},
        {"number_of_images": 5},
        {"budget_usd": 0},
        {"cap_day_usd": -0.01},
        {"cap_conversation_usd": float("nan")},
        {"image_model": "ultra"},
        {"text_model": "auto"},
        {"search_policy": "sometimes"},
        {"budget_usd": float("inf")},
        {"surprise": 1},
        # The locks.
        {"negative_prompt": "x" * 1001},
        {"reference_mode": "ANY"},
        {"reference_count": 0},
        {"reference_count": 17},
    ],
)
def test_a_turns_settings_refuse_what_no_control_offers(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TurnSettings.model_validate(fields)
