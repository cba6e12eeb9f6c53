"""What is said of the services asked: the key, their policy, their failures, and the way to them."""

from __future__ import annotations

from agent.error_codes import Actor, ErrorCode
from agent.error_sentences.sentence import Sentence

SERVICES: dict[ErrorCode, Sentence] = {
    ErrorCode.KEY_INVALID: (
        Actor.KEY,
        False,
        "{service} does not accept this API key. Please check it in {console} and enter it again.",
    ),
    ErrorCode.KEY_MISSING: (Actor.KEY, False, "This model needs a Gemini API key. Please add one in Settings."),
    ErrorCode.OWNER_CAP_USED_UP: (
        Actor.KEY,
        False,
        "What the owner of this studio pays for in a day (${cap}) is used up. Please add your own Gemini API key in "
        "Settings, or come back tomorrow.",
    ),
    ErrorCode.KEY_FORBIDDEN: (
        Actor.KEY,
        False,
        "Your API key may not use {model}. Please give it access in {console}.",
    ),
    ErrorCode.REGION_UNSUPPORTED: (
        Actor.KEY,
        False,
        "Google does not offer the Gemini API where this studio runs. Please run it from another region.",
    ),
    ErrorCode.BILLING_REQUIRED: (
        Actor.KEY,
        False,
        "Your key has no quota for {model}. Please turn on billing in {console}.",
    ),
    ErrorCode.QUOTA_EXHAUSTED: (
        Actor.KEY,
        False,
        "Today's quota of your key for {model} is used up. It comes back at midnight Pacific time.",
    ),
    ErrorCode.KEY_EXPIRED: (
        Actor.KEY,
        False,
        "This API key has expired. Please make a new one in {console} and enter it.",
    ),
    ErrorCode.KEY_LEAKED: (
        Actor.KEY,
        False,
        "Google found this API key in public and blocked it. Please delete it in {console}, make a new "
        "one, and enter that.",
    ),
    ErrorCode.KEY_SUSPENDED: (
        Actor.KEY,
        False,
        "Google has suspended the project of this API key. Please look after it in {console}, or enter a "
        "key of another project.",
    ),
    ErrorCode.KEY_RESTRICTED: (
        Actor.KEY,
        False,
        "This API key works only from certain websites, addresses or apps, and this studio is none of "
        "them. Please lift that restriction in the Google Cloud console, under Credentials, or make a key "
        "without it.",
    ),
    ErrorCode.KEY_WITHOUT_API: (
        Actor.KEY,
        False,
        "This API key is not allowed to use the Gemini API. Please add the Generative Language API to "
        "what it may use, in the Google Cloud console, under Credentials.",
    ),
    ErrorCode.API_DISABLED: (
        Actor.KEY,
        False,
        "The Gemini API is turned off in the project of this API key. Please turn on the Generative "
        "Language API in the Google Cloud console, wait a few minutes, and try again.",
    ),
    ErrorCode.CREDITS_USED_UP: (
        Actor.KEY,
        False,
        "The prepaid credit of your key's project is used up. Please top it up in {console}.",
    ),
    ErrorCode.MODEL_NOT_OFFERED: (
        Actor.KEY,
        False,
        "Google does not offer {model} to your key. Please choose another model, or enter a key of a "
        "project that has it.",
    ),
    ErrorCode.PROMPT_BLOCKED: (
        Actor.POLICY,
        False,
        "{service}'s policy declined the request before an answer ({reason}). Please say it another way.",
    ),
    ErrorCode.ANSWER_BLOCKED: (
        Actor.POLICY,
        True,
        "{service}'s policy stopped the answer ({reason}). Please say it another way, or try again.",
    ),
    ErrorCode.PICTURE_BLOCKED: (
        Actor.POLICY,
        True,
        "{service}'s policy declined the picture ({reason}). Please say it another way.",
    ),
    ErrorCode.PICTURE_RECITATION: (
        Actor.POLICY,
        True,
        "The picture came too close to an existing work ({reason}). Please ask for something of your own.",
    ),
    ErrorCode.LANGUAGE_UNSUPPORTED: (
        Actor.POLICY,
        False,
        "The model does not support this language. Please write in another one.",
    ),
    ErrorCode.RATE_LIMITED: (Actor.PROVIDER, True, "{service} asks us to slow down. Please try again in {seconds} s."),
    ErrorCode.OVERLOADED: (Actor.PROVIDER, True, "{model} is overloaded at {service}. Please try again in a moment."),
    ErrorCode.PROVIDER_ERROR: (
        Actor.PROVIDER,
        True,
        "{service} had an internal error (HTTP {status}). Please try again; the call may have been charged.",
    ),
    ErrorCode.PROVIDER_TIMEOUT: (
        Actor.PROVIDER,
        True,
        "{model} did not answer within {seconds} s. Please try again; the call may have been charged.",
    ),
    ErrorCode.MODEL_NOT_FOUND: (
        Actor.OPERATOR,
        False,
        "{service} does not know the model {model}. Please set {variable} to one that your key can use.",
    ),
    ErrorCode.REQUEST_REJECTED: (
        Actor.US,
        False,
        "{service} rejected the request ({detail}). Please send us the debug report.",
    ),
    ErrorCode.SIGNATURE_REJECTED: (
        Actor.PROVIDER,
        True,
        "Google no longer accepts the memory of an earlier picture. Please try again with the picture attached.",
    ),
    ErrorCode.EMPTY_ANSWER: (Actor.PROVIDER, True, "The model gave an empty answer. Please try again."),
    ErrorCode.ANSWER_UNREADABLE: (
        Actor.PROVIDER,
        True,
        "What came back cannot be read as an answer. Please try again; the call may have been charged.",
    ),
    ErrorCode.TEXT_INSTEAD_OF_PICTURE: (
        Actor.PROVIDER,
        True,
        "The model answered in words instead of a picture: {text}",
    ),
    ErrorCode.NO_PICTURE: (
        Actor.PROVIDER,
        True,
        "The model made no picture ({reason}). Please try again or say more of what it should show.",
    ),
    ErrorCode.MALFORMED_CALL: (Actor.PROVIDER, True, "The model garbled its own instructions. Please try again."),
    ErrorCode.ANSWER_TOO_LONG: (
        Actor.PROVIDER,
        True,
        "The answer was cut at the model's length limit. Please ask for less at once.",
    ),
    ErrorCode.BROKEN_PICTURE: (Actor.PROVIDER, True, "The picture arrived damaged. Please try again."),
    ErrorCode.SEARCH_UNREADABLE: (
        Actor.PROVIDER,
        True,
        "The web search brought nothing readable. Please try again, or turn the search off.",
    ),
    ErrorCode.TOO_MANY_STEPS: (
        Actor.PROVIDER,
        True,
        "The agent went round in circles and was stopped after {steps} steps. Please say it more plainly.",
    ),
    ErrorCode.NODE_TIMEOUT: (
        Actor.PROVIDER,
        True,
        "Nothing came for {seconds} seconds, so the wait was ended. Please try again.",
    ),
    ErrorCode.CALL_UNKNOWN: (
        Actor.PROVIDER,
        True,
        "The studio was cut off after asking {model} and never got the answer. The call may have been charged; nothing "
        "is asked again unless you say so.",
    ),
    ErrorCode.CONNECTION_FAILED: (
        Actor.NETWORK,
        True,
        "{service} cannot be reached. Please check the network connection and try again.",
    ),
    ErrorCode.STREAM_CUT: (
        Actor.NETWORK,
        True,
        "The connection broke in the middle of the answer. What had arrived is kept; please try again.",
    ),
    ErrorCode.PROXY_FAILED: (
        Actor.NETWORK,
        False,
        "The proxy of this machine does not let the studio through to {service}. Please check its "
        "address, name and password.",
    ),
    ErrorCode.CERTIFICATE_FAILED: (
        Actor.NETWORK,
        False,
        "Whoever answers for {service} shows a certificate that cannot be verified. Please check the "
        "clock of this machine, and whether a proxy or a virus scanner reads along.",
    ),
}
