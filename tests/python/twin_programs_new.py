"""Programs in syntax that Python 3.12 brought."""

# ruff: noqa

from twin_common import Base, log, say


def p_generic_function():
    def inner[T: int](x: T, *more: T) -> T:
        return x, more, T.__name__

    def outer[S](x: S = say(3)):
        return [x for _ in range(2)], S.__name__, [(lambda: S)().__name__]

    return inner(1, 2), outer()


class Stack[T](Base):
    def push(self, value: T) -> list[T]:
        return [super().value(2), T.__name__, (lambda: value)()]

    def convert[U](self, value: U):
        return f"{T.__name__}{U.__name__} {self.x + value}"


def p_generic_class():
    class Local[K](Base):
        def name(self):
            return K.__name__

    stack = Stack(3)
    return stack.push(1), stack.convert(2), Local(1).name(), Local[int].__args__


def p_fstring_quotes():
    d = {"a": {"b": 1}}
    return f"{d['a']['b']:>{d['a']['b'] + 3}}", f"{'\n'.join(['x', 'y'])}"


def p_failing_fstring_in_lines():
    return f"""{say(1)} and {say(2) + "x"}"""


PROGRAMS = [value for name, value in sorted(globals().items()) if name.startswith("p_")]
