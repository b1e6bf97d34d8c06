"""What the programs share: a log, and objects that write in it whatever is done to them."""

log = []


class Noisy:
    """Writes down every operation on it."""

    def __init__(self, name, **attributes):
        self.__dict__.update(attributes, name=name)

    def __repr__(self):
        return f"<{self.name}>"

    def __bool__(self):
        log.append(f"bool {self.name}")
        return self.__dict__.get("truth", True)

    def __getattr__(self, name):
        log.append(f"get {self.name}.{name}")
        if name.startswith("missing"):
            raise (
                AttributeError(f"{self.name} has no {name}", name=name, obj=self)
                if kwargs_work
                else AttributeError(name)
            )
        return Noisy(f"{self.name}.{name}")

    def __setattr__(self, name, value):
        log.append(f"set {self.name}.{name} = {value}")
        self.__dict__[name] = value

    def __delattr__(self, name):
        log.append(f"del {self.name}.{name}")

    def __getitem__(self, key):
        log.append(f"get {self.name}[{key}]")
        if key == 7:
            raise IndexError("seven")
        return Noisy(f"{self.name}[{key}]")

    def __setitem__(self, key, value):
        log.append(f"set {self.name}[{key}] = {value}")

    def __delitem__(self, key):
        log.append(f"del {self.name}[{key}]")

    def __call__(self, *args, **kwargs):
        log.append(f"call {self.name} {args} {kwargs}")
        return Noisy(f"{self.name}()")

    def __lt__(self, other):
        log.append(f"{self.name} < {other}")
        return Noisy(f"({self.name}<{other})", truth=self.__dict__.get("less", True))

    def __add__(self, other):
        log.append(f"{self.name} + {other}")
        return Noisy(f"({self.name}+{other})")

    def __radd__(self, other):
        log.append(f"{other} +r {self.name}")
        return Noisy(f"({other}+{self.name})")

    def __iadd__(self, other):
        log.append(f"{self.name} += {other}")
        return self

    def __neg__(self):
        log.append(f"-{self.name}")
        return self

    def __contains__(self, item):
        log.append(f"{item} in {self.name}")
        return item == 1

    def __iter__(self):
        log.append(f"iter {self.name}")
        yield from (Noisy(f"{self.name}{i}") for i in range(2))

    def __enter__(self):
        log.append(f"enter {self.name}")
        return Noisy(f"{self.name}.entered")

    def __exit__(self, kind, value, trace):
        log.append(f"exit {self.name} {kind and kind.__name__}")
        return self.__dict__.get("swallow", False)

    def __format__(self, spec):
        log.append(f"format {self.name} {spec!r}")
        return f"[{self.name}:{spec}]"

    def __hash__(self):
        log.append(f"hash {self.name}")
        return hash(self.name)

    def __eq__(self, other):
        log.append(f"{self.name} == {other}")
        return isinstance(other, Noisy) and self.name == other.name


def _keywords_work():
    try:
        AttributeError("x", name="n", obj=1)
    except TypeError:
        return False
    return True


kwargs_work = _keywords_work()


def say(value, result=None):
    log.append(f"say {value}")
    return value if result is None else result


class Base:
    def __init__(self, x):
        self.x = x

    def value(self, k=1):
        return self.x * k

    @property
    def double(self):
        return self.x * 2

    @classmethod
    def make(cls, x):
        return cls(x + 1)

    @staticmethod
    def fixed():
        return 42


def f_everything(a, /, b, *rest, c, d=4, **extra):
    return a, b, rest, c, d, extra


class Bad:
    """Has no truth; comparisons give another."""

    def __bool__(self):
        raise ValueError("no truth")

    def __lt__(self, other):
        return self
