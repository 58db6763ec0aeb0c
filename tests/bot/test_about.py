"""The public pages: what Slack's review and a careful admin look for, with the facts of this deployment."""

import re
from typing import Any

import pytest

from bot.about import About
from bot.settings import SettingsError, load_settings
from tests.bot.bench import Bench
from workflows import Retention


def about(**settings: Any) -> About:
    return About.of(load_settings(THREADLINE_ENV="test", **settings))


def words(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


async def test_they_are_served_and_lead_to_each_other(bench: Bench) -> None:
    for path in ("/", "/privacy", "/support"):
        page = await bench.get(f"{bench.url}{path}")
        assert page.status == 200
        for link in re.findall(r'href="(/[^"]*)"', page.text):
            assert (await bench.get(f"{bench.url}{link}")).status in (200, 302)
    assert "/slack/install" in (await bench.get(f"{bench.url}/")).text


def test_the_landing_page_says_that_a_model_answers_and_may_be_wrong() -> None:
    page = words(about(THREADLINE_MODEL="anthropic:some-model").landing())
    assert "language model of Anthropic and may be wrong" in page
    assert "Add to Slack" not in page
    assert "language model and may be wrong" in words(about().landing())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"THREADLINE_MODEL": "openai:m"}, "are sent to OpenAI to be answered"),
        ({"THREADLINE_MODEL": "openai:m", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "sent to the model's provider"),
        ({}, "sent to no other service"),
        ({"THREADLINE_DATA_REGION": "Frankfurt <EU>"}, "Everything is stored in Frankfurt &lt;EU&gt;."),
        ({"THREADLINE_RETENTION_DAYS": "45"}, "Records of work: 45 days."),
        ({"THREADLINE_DEPARTED_RETENTION_DAYS": "1"}, "all data of the workspace is deleted after 1 day."),
        ({"THREADLINE_DEPARTED_RETENTION_DAYS": "0"}, "all data of the workspace is deleted."),
    ],
)
def test_what_is_kept_and_for_how_long_is_as_this_deployment_has_it(settings: dict[str, str], said: str) -> None:
    assert said in words(about(**settings).privacy())


def test_the_days_that_are_no_setting_are_those_of_the_sweeps() -> None:
    page = words(about().privacy())
    assert f"Traces, which hold no conversation: {Retention().spans_days:g} days." in page
    assert f"Approvals, once decided: {Retention().approvals_days:g} days." in page


def test_support_names_an_address_where_there_is_one() -> None:
    assert "mailto:help@example.com" in about(THREADLINE_SUPPORT_EMAIL="help@example.com").support()
    assert "ask whoever runs this deployment" in about().support()
    with pytest.raises(SettingsError, match="THREADLINE_SUPPORT_EMAIL"):
        load_settings(THREADLINE_ENV="test", THREADLINE_SUPPORT_EMAIL='"><script>')
