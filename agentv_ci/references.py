"""The `$ref`s of an author's JSON Schema: followed from file to file, and bundled into one document.

The door to referencing. Nothing is ever fetched: a reference leads into the schema itself or to a file beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from agentv_ci.canonical import digest_of
from agentv_ci.contracts.base import JsonObject, JsonValue

if TYPE_CHECKING:
    from referencing import Registry, Resource
    from referencing._core import Resolver

Read = Callable[[Path], JsonValue]
"""Read a file; raises OSError or ValueError."""

KEYWORDS = ("$ref", "$dynamicRef")

LEGACY = ("draft-03", "draft-04", "draft-06", "draft-07")
"""Dialects in which a `$ref` hides its siblings, and embedded schemas stand in `definitions`."""


def bad_reference(schema: JsonValue, place: Path, read: Read) -> str | None:
    """Return what is wrong with the first reference of a valid schema, or of a file it needs, that leads nowhere.

    `place` is the file that holds the schema: a reference to another file is relative to it. None: all is well.
    """
    try:
        for _ in _explore(schema, place, read):
            pass
    except LeadsNowhere as error:
        return str(error)
    except RecursionError:
        return "it is nested too deep"
    except ValueError as error:
        return f"an $id or $ref is no address: {error}"
    return None


def bundle(schema: JsonObject | bool, place: Path, read: Read) -> JsonObject | bool:
    """Return a schema whose references are all good as one that needs no other file.

    A compound document (JSON Schema 2020-12 core, 9.3): every file it needs is embedded under the `$id`
    `urn:sha256:…`, the digest of its canonical content, and referred to by that. Where files lie leaves no trace.
    """
    documents = list(_explore(schema, place, read))
    if isinstance(schema, bool) or not any(document.references for document in documents):
        return schema
    root, *others = documents
    names = {document.uri: _identity(document) for document in documents}
    used = {url for document in documents for url, _ in document.references.values()}
    bundled = _rewrite(root.contents, root, names)
    assert isinstance(bundled, dict)
    if root.uri in used:
        bundled |= {_id_keyword(bundled): names[root.uri]}
    embedded = {names[each.uri]: _embedded(each, names) for each in others}
    keyword = "definitions" if _is_legacy(bundled) else "$defs"
    own = bundled.get(keyword)
    return bundled | {keyword: (own if isinstance(own, dict) else {}) | dict(sorted(embedded.items()))}


class LeadsNowhere(Exception):
    """A reference has nothing to refer to."""


@dataclass(frozen=True, slots=True)
class _Document:
    """A file of a schema."""

    uri: str
    contents: JsonValue
    references: dict[int, tuple[str, str]]
    """`id` of a subschema that refers to a file → the file's address and the fragment in it."""


def _explore(schema: JsonValue, place: Path, read: Read) -> Iterator[_Document]:
    """Yield a schema's document and those of all files it needs; raises LeadsNowhere."""
    from referencing import Registry, Resource
    from referencing.exceptions import NoSuchResource
    from referencing.jsonschema import DRAFT202012

    known: dict[str, Resource[JsonValue]] = {}

    def retrieve(uri: str) -> Resource[JsonValue]:
        if uri not in known:
            if urlsplit(uri).scheme != "file":
                raise NoSuchResource(uri)
            contents = read(_path(uri))
            known[uri] = Resource[JsonValue].from_contents(contents, default_specification=DRAFT202012)
        return known[uri]

    start = place.as_uri()
    root = Resource[JsonValue].from_contents(schema, default_specification=DRAFT202012)
    # attrs names the argument without the underscore of the attribute.
    empty = Registry[JsonValue](retrieve=retrieve)  # type: ignore[call-arg]
    registry = empty.with_resource(start, root)
    pending = [start]
    for uri in pending:
        try:
            document = _document(uri, registry)
        except LeadsNowhere as error:
            inside = f", in '{_path(uri).name}'" if uri != start else ""
            raise LeadsNowhere(f"{error}{inside}") from error
        yield document
        pending += dict.fromkeys(url for url, _ in document.references.values() if url not in pending)


def _path(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


def _document(uri: str, registry: Registry[JsonValue]) -> _Document:
    retrieved = registry.get_or_retrieve(uri)
    resource = retrieved.value
    resolver = retrieved.registry.resolver(uri)
    found = list(_references(resource, resolver.in_subresource(resource), urljoin(uri, resource.id() or "")))
    own = {base for _, base, _ in found} | {urljoin(uri, resource.id() or "")}
    references: dict[int, tuple[str, str]] = {}
    for holder, base, reference in found:
        url, fragment = urldefrag(urljoin(base, reference))
        if not reference.startswith("#") and urlsplit(url).scheme == "file" and (url == uri or url not in own):
            references[id(holder)] = (url, fragment)
    return _Document(uri, resource.contents, references)


def _references(
    resource: Resource[JsonValue], resolver: Resolver[JsonValue], base: str
) -> Iterator[tuple[JsonObject, str, str]]:
    """Yield every subschema that refers to something, the address it is relative to, and the reference."""
    contents = resource.contents
    if isinstance(contents, dict):
        for keyword in KEYWORDS:
            if isinstance(reference := contents.get(keyword), str):
                _look_up(keyword, reference, resolver)
                yield contents, base, reference
    for inner in resource.subresources():
        own = urldefrag(urljoin(base, inner.id() or "")).url
        yield from _references(inner, resolver.in_subresource(inner), own)


def _look_up(keyword: str, reference: str, resolver: Resolver[JsonValue]) -> None:
    from referencing.exceptions import Unresolvable

    try:
        resolver.lookup(reference)
    except Unresolvable as error:
        # Unresolvable ← Unretrievable ← what reading the file came to.
        cause = error.__cause__ and error.__cause__.__cause__
        reason = f": {cause}" if isinstance(cause, ValueError) else ""
        raise LeadsNowhere(f"{keyword} '{reference}' leads nowhere{reason}") from error


def _identity(document: _Document) -> str:
    contents = document.contents
    given = contents.get(_id_keyword(contents)) if isinstance(contents, dict) else None
    if isinstance(given, str) and urlsplit(given).scheme not in ("", "file"):
        return urldefrag(given).url
    return f"urn:sha256:{digest_of(contents)}"


def _rewrite(value: JsonValue, document: _Document, names: dict[str, str]) -> JsonValue:
    if isinstance(value, list):
        return [_rewrite(item, document, names) for item in value]
    if not isinstance(value, dict):
        return value
    rewritten = {key: _rewrite(item, document, names) for key, item in value.items()}
    if id(value) in document.references:
        url, fragment = document.references[id(value)]
        keyword = next(each for each in KEYWORDS if isinstance(value.get(each), str))
        rewritten[keyword] = f"{names[url]}#{fragment}" if fragment else names[url]
    return rewritten


def _embedded(document: _Document, names: dict[str, str]) -> JsonValue:
    rewritten = _rewrite(document.contents, document, names)
    if not isinstance(rewritten, dict):
        return {"$id": names[document.uri], "allOf": [rewritten]}
    if "$ref" in rewritten and _is_legacy(rewritten):
        rewritten["allOf"] = [{"$ref": rewritten.pop("$ref")}]
    return {_id_keyword(rewritten): names[document.uri], **_without_id(rewritten)}


def _without_id(schema: JsonObject) -> JsonObject:
    return {key: value for key, value in schema.items() if key != _id_keyword(schema)}


def _id_keyword(schema: JsonObject) -> str:
    return "id" if _dialect(schema).endswith(("draft-03/schema", "draft-04/schema")) else "$id"


def _is_legacy(schema: JsonObject) -> bool:
    return any(draft in _dialect(schema) for draft in LEGACY)


def _dialect(schema: JsonObject) -> str:
    return str(schema.get("$schema", "")).rstrip("#")
