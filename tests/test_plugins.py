"""What is missing is named with a command that installs it, by where this Hunch came from."""

import json
import shlex

import pytest

from hunch.core import UsageError
from hunch.extras import install, install_contrib, library, of_contrib


@pytest.fixture
def came_from(tmp_path, monkeypatch):
    """Set where the installed Hunch came from, as pip writes it down."""

    def set_origin(origin):
        folder = tmp_path / "hunch_rl-0.1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: hunch-rl\nVersion: 0.1.0\n")
        if origin:
            (folder / "direct_url.json").write_text(json.dumps(origin))
        monkeypatch.syspath_prepend(tmp_path)

    return set_origin


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ({"url": "file:///a%20b/hunch", "dir_info": {"editable": True}}, ["-e", "/a b/hunch[plot]"]),
        ({"url": "file:///a/hunch", "dir_info": {}}, ["/a/hunch[plot]"]),
        ({"url": "file:///a/hunch-1.whl", "archive_info": {}}, ["/a/hunch-1.whl[plot]"]),
        (None, ["hunch-rl[plot]"]),
    ],
    ids=["a clone", "a folder", "a wheel", "an index"],
)
def test_an_extra_is_installed_from_where_hunch_was(origin, command, came_from):
    came_from(origin)
    assert shlex.split(install("plot")) == ["pip", "install", *command]


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ({"url": "file:///a%20b/hunch", "dir_info": {"editable": True}}, ["-e", "/a b/hunch/contrib"]),
        ({"url": "file:///a/hunch", "dir_info": {}}, ["/a/hunch/contrib"]),
        ({"url": "file:///a/hunch-1.whl", "archive_info": {}}, ["hunch-rl-contrib"]),
        (None, ["hunch-rl-contrib"]),
    ],
    ids=["a clone", "a folder", "a wheel", "an index"],
)
def test_contrib_is_installed_from_beside_hunch(origin, command, came_from):
    came_from(origin)
    assert shlex.split(install_contrib()) == ["pip", "install", *command]
    assert str(of_contrib("rain")).startswith("rain is in the package hunch-rl-contrib: pip install ")


def test_a_missing_library_is_a_sentence():
    with pytest.raises(UsageError) as error:
        library("no_such_library", "This needs much", "plot")
    assert str(error.value) == f"This needs much: {install('plot')}."
