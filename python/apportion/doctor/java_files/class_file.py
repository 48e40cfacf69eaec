"""Reader of Java class files: the members of a class, and the members of other classes it uses.

The format is chapter 4 of the Java Virtual Machine Specification.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

_UTF8 = 1
_REFERENCES = (9, 10, 11)  # fields, methods, and methods of interfaces
# Bytes of each kind of constant after its tag. Kinds 5 and 6 take two places.
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4,
          18: 4, 19: 2, 20: 2}  # fmt: skip


class Member(NamedTuple):
    """A field or method of a class, such as `org/apache/spark/SparkConf`, `get`, `()I`."""

    owner: str
    name: str
    type: str


class ClassFile(NamedTuple):
    """A class: its superclasses and its own members."""

    parents: list[str]
    members: set[tuple[str, str]]
    """Name and type of each field and method."""


class _Constants(NamedTuple):
    """Constants of a class by index, and the position after them."""

    values: list[tuple[int, bytes]]
    end: int

    def text(self, place: int) -> str:
        tag, value = self.values[place]
        return value.decode(errors="replace") if tag == _UTF8 else self.text(_first(value))


def used_members(content: bytes, package: str) -> set[Member]:
    """Return the members that a class uses of other classes in a package.

    Raises `struct.error` or `LookupError` if the content is not a class file.
    """
    constants = _constants(content)
    used = set()
    for tag, value in constants.values:
        if tag in _REFERENCES and (owner := constants.text(_first(value))).startswith(package):
            _, name_and_type = constants.values[_second(value)]
            name, type = _first(name_and_type), _second(name_and_type)
            used.add(Member(owner, constants.text(name), constants.text(type)))
    return used


def _constants(content: bytes) -> _Constants:
    magic, _, count = struct.unpack_from(">IIH", content)
    if magic != 0xCAFEBABE:
        raise LookupError("not a class file")
    constants: list[tuple[int, bytes]] = [(0, b"")] * count
    position, index = 10, 1
    while index < count:
        tag = content[position]
        if tag == _UTF8:
            size = int.from_bytes(content[position + 1 : position + 3], "big")
            constants[index] = tag, content[position + 3 : position + 3 + size]
            position += 3 + size
        else:
            constants[index] = tag, content[position + 1 : position + 1 + _SIZES[tag]]
            position += 1 + _SIZES[tag]
        index += 2 if tag in (5, 6) else 1

    return _Constants(constants, position)


def parse(content: bytes) -> ClassFile:
    """Parse a class file. Raises as `used_members` does."""
    constants = _constants(content)
    position = constants.end
    _, _, parent, interfaces = struct.unpack_from(">HHHH", content, position)
    position += 8
    places = struct.unpack_from(f">{interfaces}H", content, position)
    parents = [constants.text(place) for place in (parent, *places) if place]
    position += 2 * interfaces
    members = set()
    for _ in ("fields", "methods"):
        (number,) = struct.unpack_from(">H", content, position)
        position += 2
        for _ in range(number):
            _, name, type, attributes = struct.unpack_from(">HHHH", content, position)
            members.add((constants.text(name), constants.text(type)))
            position += 8
            for _ in range(attributes):
                (size,) = struct.unpack_from(">I", content, position + 2)
                position += 6 + size
    return ClassFile(parents, members)


def _first(value: bytes) -> int:
    return int.from_bytes(value[:2], "big")


def _second(value: bytes) -> int:
    return int.from_bytes(value[2:4], "big")
