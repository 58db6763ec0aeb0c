"""What a package of the engine offers is what its `__all__` says: nothing else can be imported from it, and nothing in it is missing."""

import importlib
import pkgutil
from types import ModuleType

import pytest

import workflows

PACKAGES = [
    name
    for name in (
        "workflows",
        *(each.name for each in pkgutil.walk_packages(workflows.__path__, "workflows.") if each.ispkg),
    )
    if hasattr(importlib.import_module(name), "__all__")
]


def test_the_packages_are_found() -> None:
    assert {"workflows", "workflows.pubsub", "workflows.schedules", "workflows.storage", "workflows.tracing"} <= set(
        PACKAGES
    )


@pytest.mark.parametrize("name", PACKAGES)
def test_all_is_what_can_be_imported(name: str) -> None:
    package = importlib.import_module(name)
    offered = {
        each for each, found in vars(package).items() if not each.startswith("_") and not isinstance(found, ModuleType)
    }
    # A name may be that of a module, too, which importing the package binds first.
    assert offered | {each for each in package.__all__ if hasattr(package, each)} == set(package.__all__)


def test_every_error_of_the_engine_is_at_its_root() -> None:
    """Whoever calls the engine catches what it raises without knowing where it is defined."""
    from workflows import errors
    from workflows.storage import StoreUnavailableError

    raised = {name for name, found in vars(errors).items() if isinstance(found, type) and issubclass(found, Exception)}
    assert raised | {StoreUnavailableError.__name__} <= set(workflows.__all__)
