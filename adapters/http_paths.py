"""How methods are spelled as paths, in both directions. Knows text, not connections.

    quote                   GET /quotes/{symbol}?seq=42
    quotes.page             GET /quotes/{symbol}?after=-1&limit=100 (one of the two is enough)
    quotes                  GET /quotes/{symbol}/stream?count=5&delayMs=0
    quotes.unbounded        GET /quotes/{symbol}/unbounded
    quotes.unbounded.ready  GET /quotes/{symbol}/unbounded/ready
    hello, produced, run    GET /, GET /produced, GET /run
    any other               POST /<name, a slash for each dot>, the encoded request (or the items) as the body

The fields of a GET's request that its path does not hold are its query, by their names on the wire.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote, unquote, unquote_plus

import msgspec

from adapters.api import CallFailed, Message, Method, NotRepresentable, Shape

_RESOURCES = {
    "quote": "/quotes/{symbol}",
    "quotes.page": "/quotes/{symbol}",
    "quotes": "/quotes/{symbol}/stream",
    "quotes.unbounded": "/quotes/{symbol}/unbounded",
    "quotes.unbounded.ready": "/quotes/{symbol}/unbounded/ready",
    "hello": "/",
    "produced": "/produced",
    "run": "/run",
}
_BY_QUERY = frozenset({"quotes.page"})  # it shares its path with another method
_FIELD = "{symbol}"


class Route:
    """One method as a verb and a path. `get`: the request is in the path and the query, else in the body."""

    def __init__(self, method: Method) -> None:
        self.method = method
        self.get = method.name in _RESOURCES and method.shape in (Shape.UNARY, Shape.SERVER_STREAM)
        self.verb = "GET" if self.get else "POST"
        self.path = _RESOURCES[method.name] if self.get else "/" + method.name.replace(".", "/")
        self.resource = _FIELD in self.path
        fields = [] if not self.get else list(msgspec.structs.fields(method.request))
        self._in_path = [field for field in fields if self.resource and field.name == _FIELD[1:-1]]
        self._in_query = [field for field in fields if field not in self._in_path]
        self._keys = {field.encode_name for field in self._in_query}

    @property
    def usage(self) -> str:
        """How to ask, for who asked it wrong."""
        query = "&".join(f"{field.encode_name}=<{field.type.__name__}>" for field in self._in_query)
        return f"usage: {self.verb} {self.path}" + (f"?{query}" if query else "")

    def has(self, key: bytes) -> bool:
        """Whether `key` may be in the query."""
        return key.decode("ascii", "replace") in self._keys

    def target(self) -> Callable[[Message], str]:
        """What makes the target of a GET: path and query. It raises NotRepresentable for what no URL can carry."""
        line = self.path.replace(_FIELD, "%s")
        if self._in_query:
            line += "?" + "&".join(f"{field.encode_name}=%s" for field in self._in_query)
        names = [field.name for field in (*self._in_path, *self._in_query)]
        if not names:
            return lambda _: line
        if len(names) == 1:
            value = operator.attrgetter(names[0])
            return lambda request: line % _spelled(value(request))
        if len(names) == 2 and self.resource and self._in_query[0].type is int:  # asked most often: half the time
            before, between, after = line.split("%s")
            text, number = map(operator.attrgetter, names)
            return lambda request: f"{before}{_spelled(text(request))}{between}{number(request)}{after}"
        values = operator.attrgetter(*names)
        return lambda request: line % tuple([v if v.__class__ is int else _spelled(v) for v in values(request)])

    def request(self, symbol: str, query: bytes) -> Any:
        """The request that a GET makes; `symbol` as it stands in the path, still quoted.

        Raises CallFailed("invalid_argument") with the usage.
        """
        fields: dict[str, str] = {}
        try:
            if self.resource:
                fields["symbol"] = unquote(symbol, errors="strict") if "%" in symbol else symbol
            if query:
                for pair in query.decode("ascii").split("&"):
                    key, _, value = pair.partition("=")
                    if key not in self._keys or key in fields:
                        raise CallFailed("invalid_argument", self.usage)
                    quoted = "%" in value or "+" in value
                    fields[key] = unquote_plus(value, errors="strict") if quoted else value
            return msgspec.convert(fields, self.method.request, strict=False)
        except (msgspec.ValidationError, UnicodeDecodeError) as exc:
            raise CallFailed("invalid_argument", self.usage) from exc


@functools.lru_cache(1024, typed=True)  # it is in every request's path; a run asks for few symbols
def _spelled(value: Any) -> str:
    if not isinstance(value, str):
        return ("false", "true")[value] if isinstance(value, bool) else str(value)
    if value.isascii() and value.isalnum():
        return value
    try:
        return quote(value, safe="")
    except UnicodeEncodeError as exc:
        raise NotRepresentable(f"a path cannot carry {value!r}: {exc.reason}") from exc


class Routes:
    """What a server finds methods by."""

    def __init__(self, methods: Iterable[Method]) -> None:
        self._plain: dict[str, Route] = {}
        self._resources: dict[str, Route] = {}  # by path, with nothing where the symbol stands
        self._paged: dict[str, Route] = {}  # likewise: what a query that starts with one of its keys asks for
        for route in map(Route, methods):
            if route.resource:
                path = route.path.replace(_FIELD, "")
                (self._paged if route.method.name in _BY_QUERY else self._resources)[path] = route
            else:
                self._plain[route.path] = route

    def find(self, verb: str, path: str, query: bytes = b"") -> tuple[Route, str]:
        """The method at `path` (as it came, quoted), and the symbol in it. Two methods share /quotes/{symbol}: the
        first key of `query` tells them apart.

        Raises CallFailed: "not_found", or "method_not_allowed" for the wrong verb.
        """
        route, symbol = self._plain.get(path), ""
        if route is None:
            parts = path.split("/")
            if len(parts) > 2:
                symbol, parts[2] = parts[2], ""
                rest = "/".join(parts)
                route = self._resources.get(rest)
                if query and (paged := self._paged.get(rest)) and paged.has(query.partition(b"=")[0]):
                    route = paged
            if route is None:
                raise CallFailed("not_found", f"nothing at {path}")
        if verb != route.verb:
            raise CallFailed("method_not_allowed", f"{path} takes {route.verb}")
        return route, symbol
