"""The checked schema of ``conf/dataset/*.yaml`` (pydantic only: importing it is cheap)."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from roshap.datasets.readers import READERS

Task = Literal["binary", "multiclass", "regression"]


def _text(value: object) -> object:
    # YAML and the command line turn a column called 7 or a class called true into another type.
    return str(value) if isinstance(value, (bool, int, float)) else value


def _inside(value: str) -> str:
    path = PurePosixPath(value)
    if not value or path.is_absolute() or ".." in path.parts or "\\" in value:
        raise ValueError(
            f"{value!r} must be a relative path that stays inside the data set's folder"
        )
    return value


def _http(value: str) -> str:
    if not re.match(r"https?://[^/]", value):
        raise ValueError(f"{value!r} is not an http:// or https:// address")
    return value


def _known_reader(value: str) -> str:
    if value not in READERS:
        raise ValueError(f"unknown reader {value!r}; valid: {', '.join(sorted(READERS))}")
    return value


Label = Annotated[str, BeforeValidator(_text)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
RelativePath = Annotated[str, AfterValidator(_inside)]
HttpUrl = Annotated[str, AfterValidator(_http)]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class UrlSpec(_Frozen):
    """One address of a file, with the checksum of what *that* address serves.

    ``sha256: null`` says that it is not known: then the checksums of the archive's members decide,
    or (for a data set of one file) the digest of the canonical table.
    """

    url: HttpUrl
    sha256: Sha256 | None


class SourceSpec(_Frozen):
    """One file of a data set and where it can be had, in order of preference.

    Attributes
    ----------
    file
        Its name in a mirror and in the cache: ``MIRROR/<dataset>/<file>``.
    urls
        Plain addresses serve the bytes of ``sha256``; see :class:`UrlSpec` for one that does not.
    sha256
        Checksum of the file.
    members
        For an archive: the members that are read, and the checksum of each.
    """

    file: RelativePath
    urls: tuple[HttpUrl | UrlSpec, ...] = ()
    sha256: Sha256 | None = None
    members: dict[RelativePath, Sha256] = Field(default_factory=dict)

    @property
    def candidates(self) -> tuple[UrlSpec, ...]:
        """Every address with its own checksum."""
        return tuple(
            url if isinstance(url, UrlSpec) else UrlSpec(url=url, sha256=self.sha256)
            for url in self.urls
        )


class DatasetSpec(_Frozen):
    """A data set: where its files are, how they are read, and what must come out.

    Attributes
    ----------
    name
        Folder of the data set below ``data/``, in a mirror and in the cache.
    reader, reader_options
        A name of :func:`roshap.datasets.reader_names`, and keywords of that reader.
    sources
        Files that are downloaded; empty for generated, bundled and own data.
    path
        A CSV or parquet file of the user's own (reader ``csv``).
    target, task, classes
        Column to predict; its task (``None``: inferred, and said); the order of the class labels
        (``None``: sorted). Of two classes the second is the positive one.
    drop, categorical, group, weight
        Columns left out, taken as categories, naming the rows that belong together, and holding
        the weights of the rows.
    shape
        (rows, features) of the canonical table.
    digest
        sha256 of the canonical table (:func:`roshap.datasets.digest.table_digest`).
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    description: str = ""
    reader: Annotated[str, AfterValidator(_known_reader)]
    reader_options: dict[str, Any] = Field(default_factory=dict)
    sources: tuple[SourceSpec, ...] = ()
    path: str | None = None
    target: Label | None = None
    task: Task | None = None
    classes: tuple[Label, ...] | None = None
    drop: tuple[Label, ...] = ()
    categorical: tuple[Label, ...] = ()
    group: Label | None = None
    weight: Label | None = None
    shape: tuple[int, int] | None = None
    digest: Sha256 | None = None

    @model_validator(mode="after")
    def _every_source_is_checked(self) -> DatasetSpec:
        if self.path is not None and self.sources:
            raise ValueError("give path (a file of your own) or sources (downloads), not both")
        for source in self.sources:
            by_table = self.digest is not None and len(self.sources) == 1
            if source.sha256 is None and not source.members and not by_table:
                raise ValueError(
                    f"{source.file} has no sha256: give it, or the sha256 of the archive's "
                    "members, or (one source only) the digest of the table"
                )
        return self
