from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roshap.tracking.parameters import MAX_KEY, flatten, safe_key, shorten


def test_flatten_keeps_the_spelling_of_the_configuration() -> None:
    nested = {"a": {"b": {"c": 1.5}}, "d": [1, {"e": None}], "f": "text", "g": {}, "h": True}
    assert flatten(nested) == {
        "a.b.c": "1.5",
        "d": '[1, {"e": null}]',
        "f": "text",
        "g": "{}",
        "h": "true",
    }


def test_long_values_that_differ_at_the_end_stay_different() -> None:
    one, two = shorten("x" * 9000 + "1"), shorten("x" * 9000 + "2")
    assert len(one) == len(two) == 6000
    assert one != two
    assert shorten("x" * 6000) == "x" * 6000


@pytest.mark.parametrize("key", ["model.name", "p0/gene 7", "dvc.md5.data/wine", "_target_", "a:b"])
def test_good_names_stay(key: str) -> None:
    assert safe_key(key) == key


@settings(deadline=None)
@given(st.text(alphabet=string.printable, min_size=1, max_size=300))
def test_every_name_becomes_one_that_mlflow_takes(key: str) -> None:
    from mlflow.utils.validation import _validate_param_name  # the first import takes a second

    name = safe_key(key)
    _validate_param_name(name)
    assert 0 < len(name) <= MAX_KEY


def test_different_names_stay_different() -> None:
    names = ["a=b", "a_b", "a?b", "a//b", "a/b", "x" * 300, "x" * 301]
    assert len({safe_key(name) for name in names}) == len(names)
