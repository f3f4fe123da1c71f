"""References of an author's JSON Schema: followed across files, and bundled into one document.

A door to referencing. Nothing is downloaded: a reference is inside the schema or to a file in the
repository.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from msgspec import Struct, field
from referencing import Registry, Resource
from referencing.exceptions import NoSuchResource, Unresolvable
from referencing.jsonschema import DRAFT202012, specification_with

from agentv_ci.base.canonical import canonical, digest_of
from agentv_ci.base.mappings import without
from agentv_ci.contracts.base import JsonObject, JsonValue

Read = Callable[[Path], JsonValue]
"""Read a file; raises OSError or ValueError."""

KEYWORDS = ("$ref", "$dynamicRef")

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The dialect of a schema without `$schema`."""
NAME = "urn:agentv-ci:schema"
"""The prefix of a bundle's `$id`; its digest follows, then the number of a part."""

WITH_ID = ("draft-03", "draft-04")
"""Dialects with `id` instead of `$id`."""
LEGACY = (*WITH_ID, "draft-06", "draft-07")
"""Dialects in which a `$ref` hides its siblings, and embedded schemas are in `definitions`."""


class Resolver(Protocol):
    """What a reference is looked up with: the library's own class has no public name."""

    def lookup(self, ref: str) -> Resolved:
        """Return what a reference stands for; raises Unresolvable."""
        ...

    def in_subresource(self, subresource: Resource[JsonValue]) -> Resolver:
        """Return what the references inside of a part are looked up with."""
        ...


class Resolved(Protocol):
    """What a reference stands for."""

    @property
    def contents(self) -> JsonValue:
        """The part of a schema."""
        ...

    @property
    def resolver(self) -> Resolver:
        """What its own references are looked up with."""
        ...


class UnresolvedRef(Exception):
    """A reference that cannot be resolved."""


def bad_ref(schema: JsonValue, place: Path, read: Read) -> str | None:
    """Return the problem of the first unresolved reference of a valid schema or of its files.

    None without one.

    `place` is the file that contains the schema: references to other files are relative to it.
    """
    try:
        bundled = bundle(schema, place, read)
        if bundled is not schema:
            _Explorer(bundled, place, _read_nothing).explore()
    except UnresolvedRef as error:
        return str(error)
    except RecursionError:
        return "nested too deep"
    except ValueError as error:
        return f"an $id or $ref is not a valid URI: {error}"
    return None


def bundle(schema: JsonValue, place: Path, read: Read) -> JsonObject | bool:
    """Return a schema as one document that needs no other file; raises UnresolvedRef.

    A compound document (JSON Schema 2020-12 core, 9.3): every file is embedded under its own `$id`,
    `urn:agentv-ci:schema:<digest>:<number>`. Paths of files are not in it.
    """
    root, *others = _Explorer(schema, place, read).explore()
    if not root.names_files:
        assert isinstance(schema, (dict, bool))
        return schema
    # Validators store schemas by `$id`, so it must be unique.
    digest = digest_of(canonical(_assembled(root, others, NAME)))
    return _assembled(root, others, f"{NAME}:{digest[:16]}")


def _read_nothing(path: Path) -> JsonValue:
    raise FileNotFoundError(path)


class _Document(Struct):
    """A file of a schema; its parts are identified by the `id` of the object."""

    uri: str
    resource: Resource[JsonValue]
    dialect: str
    base: str
    """The URI that its references are relative to."""
    refs: dict[tuple[int, str], str] = field(default_factory=dict)
    """Part and keyword → the URI it refers to, with the fragment."""
    resources: dict[int, str] = field(default_factory=dict)
    """Part with its own `$id` → its URI."""
    bases: dict[int, str] = field(default_factory=dict)
    """Subschema → the URI that its references are relative to."""
    seen: set[int] = field(default_factory=set)
    names_files: bool = False
    """Whether a reference is to a file, not only a fragment."""

    @property
    def id_keyword(self) -> str:
        return "id" if any(draft in self.dialect for draft in WITH_ID) else "$id"

    @property
    def is_legacy(self) -> bool:
        return any(draft in self.dialect for draft in LEGACY)

    @property
    def anchor(self) -> str | None:
        """The anchor of the document, if its `$id` is `#name`, as in older dialects."""
        contents = self.resource.contents
        if not self.is_legacy or not isinstance(contents, dict):
            return None
        given = contents.get(self.id_keyword)
        return given[1:] if isinstance(given, str) and given.startswith("#") else None


class _Explorer:
    """Follows references across files like a validator."""

    def __init__(self, schema: JsonValue, place: Path, read: Read) -> None:
        self._read = read
        self._dialect = _dialect(schema, DIALECT)
        self._start = place.as_uri()
        self._retrieved: dict[str, Resource[JsonValue]] = {}
        # attrs removes the underscore from the argument.
        empty = Registry[JsonValue](retrieve=self._retrieve)  # type: ignore[call-arg]
        # Otherwise every lookup crawls it again.
        self._registry: Registry[JsonValue] = empty.with_resource(
            self._start, _resource(schema, self._dialect)
        ).crawl()
        self._documents: dict[str, _Document] = {}
        self._waiting: list[tuple[_Document, Resource[JsonValue], Resolver, str]] = []

    def explore(self) -> list[_Document]:
        """Return all documents, the schema's own first."""
        self._document(self._start)
        while self._waiting:
            self._walk(*self._waiting.pop())
        return list({id(document): document for document in self._documents.values()}.values())

    def _retrieve(self, uri: str) -> Resource[JsonValue]:
        if uri not in self._retrieved:
            if urlsplit(uri).scheme != "file":
                raise NoSuchResource(uri)
            self._retrieved[uri] = _resource(self._read(_path(uri)), self._dialect)
        return self._retrieved[uri]

    def _document(self, uri: str) -> _Document:
        """Return the document of a URI; queue a new one to be walked."""
        if uri not in self._documents:
            retrieved = self._registry.get_or_retrieve(uri)
            resource = retrieved.value
            base = urldefrag(urljoin(uri, resource.id() or "")).url
            document = _Document(uri, resource, _dialect(resource.contents, self._dialect), base)
            self._documents[uri] = document
            self._documents.setdefault(base, document)
            self._register(document, resource, base)
            resolver = retrieved.registry.crawl().resolver(uri).in_subresource(resource)
            self._waiting.append((document, resource, resolver, base))
        return self._documents[uri]

    def _register(self, document: _Document, resource: Resource[JsonValue], base: str) -> None:
        document.bases[id(resource.contents)] = base
        for inner in resource.subresources():
            own = base
            if name := inner.id():
                own = urldefrag(urljoin(base, name)).url
                document.resources[id(inner.contents)] = own
                self._documents.setdefault(own, document)
            self._register(document, inner, own)

    def _walk(
        self, document: _Document, resource: Resource[JsonValue], resolver: Resolver, base: str
    ) -> None:
        contents = resource.contents
        if id(contents) in document.seen:
            return
        document.seen.add(id(contents))
        for inner in resource.subresources():
            own = document.bases.get(id(inner.contents), base)
            self._walk(document, inner, resolver.in_subresource(inner), own)
        if not isinstance(contents, dict):
            return
        for keyword in KEYWORDS:
            ref = contents.get(keyword)
            if isinstance(ref, str):
                target = self._look_up(document, keyword, ref, resolver)
                address = document.refs[id(contents), keyword] = urljoin(base, ref)
                document.names_files |= not ref.startswith("#") and _file_of(address)
                self._follow(urldefrag(address).url, target)

    def _follow(self, url: str, target: Resolved) -> None:
        """Queue the target of a reference, which need not be at a subschema's place."""
        if url in self._documents or urlsplit(url).scheme == "file":
            document = self._document(url)
            resource = _resource_of(target.contents, document.dialect)
            base = document.bases.get(id(target.contents), url)
            self._waiting.append((document, resource, target.resolver, base))

    def _look_up(self, document: _Document, keyword: str, ref: str, resolver: Resolver) -> Resolved:
        try:
            return resolver.lookup(ref)
        except Unresolvable as error:
            message = f"{keyword} '{ref}' cannot be resolved"
            # Unresolvable ← Unretrievable ← error of reading the file.
            cause = error.__cause__ and error.__cause__.__cause__
            if isinstance(cause, ValueError):
                message = f"{message}: {cause}"
            if document.uri != self._start:
                message = f"{message}, in '{_path(document.uri).name}'"
            raise UnresolvedRef(message) from error


def _assembled(root: _Document, others: list[_Document], name: str) -> JsonObject:
    """Return the documents as one, whose `$id` is `name`."""
    documents = [root, *others]
    names = _names(documents, name)
    anchors: dict[str, str] = {}
    for document in documents:
        if document.anchor:
            anchors[document.uri] = anchors[document.base] = document.anchor
    whole = _renamed(root, names, anchors)
    keyword = "definitions" if root.is_legacy else "$defs"
    definitions: JsonObject = {}
    if isinstance(own := whole.get(keyword), dict):
        definitions |= own
    for document in others:
        definitions[names[document.uri]] = _renamed(document, names, anchors)
    return whole | {keyword: definitions}


def _names(documents: list[_Document], prefix: str) -> Mapping[str, str]:
    """Return the `$id` in the bundle of every URI.

    It is the author's own if that is absolute and unique.
    """
    given = Counter(document.base for document in documents)
    names: dict[str, str] = {}
    for index, document in enumerate(documents):
        name = f"{prefix}:{index}" if index else prefix
        if not _file_of(document.base) and given[document.base] == 1:
            name = document.base
        names[document.uri] = names[document.base] = name
        inner = dict.fromkeys(document.resources.values())
        for number, url in enumerate(inner, 1):
            if _file_of(url):
                names[url] = f"{prefix}:{index}:{number}"
    return names


def _renamed(
    document: _Document, names: Mapping[str, str], anchors: Mapping[str, str]
) -> JsonObject:
    """Return a document with its new `$id` and rewritten references."""
    whole = _rewritten(document.resource.contents, document, names, anchors)
    head: JsonObject = {"$schema": document.dialect, document.id_keyword: names[document.uri]}
    if not isinstance(whole, dict):
        return {**head, "allOf": [whole]}
    if document.is_legacy and "$ref" in whole:
        # A `$ref` hides its siblings, even `$id`, but not definitions.
        definitions = {key: whole[key] for key in whole if key in ("definitions", "$defs")}
        return {**head, "allOf": [{"$ref": whole["$ref"]}], **definitions}
    others = without(whole, head)
    return head | others


def _rewritten(
    value: JsonValue, document: _Document, names: Mapping[str, str], anchors: Mapping[str, str]
) -> JsonValue:
    if isinstance(value, list):
        return [_rewritten(item, document, names, anchors) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {key: _rewritten(item, document, names, anchors) for key, item in value.items()}
    for keyword in KEYWORDS:
        if (id(value), keyword) not in document.refs:
            continue
        url, fragment = urldefrag(document.refs[id(value), keyword])
        if url not in names:
            continue
        changed[keyword] = names[url]
        if fragment and anchors.get(url) != fragment:
            changed[keyword] = f"{names[url]}#{fragment}"
    own = document.resources.get(id(value), "")
    if own in names:
        changed[document.id_keyword] = names[own]
    return changed


def _resource(contents: JsonValue, dialect: str) -> Resource[JsonValue]:
    return _resource_of(_unshared(contents), dialect)


def _resource_of(contents: JsonValue, dialect: str) -> Resource[JsonValue]:
    specification = specification_with(dialect, default=DRAFT202012)
    return Resource[JsonValue].from_contents(contents, default_specification=specification)


def _unshared(value: JsonValue) -> JsonValue:
    """Return a copy with sorted keys, without the shared parts that YAML aliases make.

    Parts are identified by `id`, and files are numbered in the order in which they are found.
    """
    if isinstance(value, dict):
        return {key: _unshared(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return list(map(_unshared, value))
    return value


def _dialect(schema: JsonValue, default: str) -> str:
    match schema:
        case {"$schema": str(named)}:
            return named
        case _:
            return default


def _file_of(url: str) -> bool:
    return urlsplit(url).scheme == "file"


def _path(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))
