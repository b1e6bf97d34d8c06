"""C functions that a capture session understands: one line each, with what it does and an example that tests run.

The kinds:
  pure        reads its arguments down to numbers and texts; the result is new
  structural  reads containers one level deep; their items pass through
  through     keeps its arguments as they are, or hands them to Python code that is followed
  stores      changes its object by its arguments;  extends: by the items of its arguments
  takes       changes its object and gives something from it
  deferred    output, repeated at its place in other calls
  input       gives something else at each call: the call is not replayed
  op          an operation on tensors (those of the op table need no line)
  calls       calls functions given to it;  tests: for their truth;  groups: to compare their results
The other kinds are functions of their own in python/capture.
"""

import builtins
import importlib
import importlib.util
import sys

# Packages that names of the table begin with.
_ROOTS = sys.stdlib_module_names | {"dlc"}

_PURE = """
bin  bin(5)
hex  hex(255)
oct  oct(8)
chr  chr(65)
ord  ord("a")
ascii  ascii("é")
hash  hash((1, 2))
divmod  divmod(7, 2)
bytes  bytes([1, 2])
complex  complex(1, 2)
range  list(range(1, 7, 2))
range.count  range(5).count(2)
range.index  range(5).index(2)
dict.fromkeys  dict.fromkeys(["a", "b"], 0)
list.count  [1, 2, 1].count(1)
list.index  [1, 2, 1].index(2)
tuple.count  (1, 2, 1).count(1)
tuple.index  (1, 2, 1).index(2)
set.isdisjoint  {1, 2}.isdisjoint({3})
set.issubset  {1}.issubset({1, 2})
set.issuperset  {1, 2}.issuperset({1})
set.union  sorted({1}.union([2]))
set.intersection  {1, 2}.intersection([2])
set.difference  {1, 2}.difference([2])
set.symmetric_difference  sorted({1, 2}.symmetric_difference([2, 3]))
set.copy  {1}.copy()
int.__format__  (5).__format__("03d")
float.__format__  (0.5).__format__(".2f")
str.__format__  "a".__format__(">3")
frozenset.union  sorted(frozenset([1]).union([2]))
frozenset.intersection  frozenset([1, 2]).intersection([2])
frozenset.difference  frozenset([1, 2]).difference([2])
frozenset.issubset  frozenset([1]).issubset([1, 2])
frozenset.issuperset  frozenset([1]).issuperset([1])
str.capitalize  "abc".capitalize()
str.casefold  "ABC".casefold()
str.center  "a".center(3, "-")
str.count  "abab".count("ab")
str.encode  "abc".encode()
str.endswith  "abc".endswith("c")
str.expandtabs  "a\\tb".expandtabs(4)
str.find  "abc".find("c")
str.format  "{} {:.2f} {x}".format(1, 2.5, x="y")
str.format_map  "{a}".format_map({"a": 1})
str.index  "abc".index("b")
str.isalnum  "a1".isalnum()
str.isalpha  "a".isalpha()
str.isascii  "a".isascii()
str.isdecimal  "1".isdecimal()
str.isdigit  "1".isdigit()
str.isidentifier  "a1".isidentifier()
str.islower  "a".islower()
str.isnumeric  "1".isnumeric()
str.isprintable  "a".isprintable()
str.isspace  " ".isspace()
str.istitle  "Ab".istitle()
str.isupper  "A".isupper()
str.ljust  "a".ljust(3)
str.lower  "ABC".lower()
str.lstrip  " a".lstrip()
str.maketrans  str.maketrans("a", "b")
str.partition  "a.b".partition(".")
str.removeprefix  "abc".removeprefix("a")
str.removesuffix  "abc".removesuffix("c")
str.replace  "abc".replace("b", "x")
str.rfind  "abab".rfind("a")
str.rindex  "abab".rindex("a")
str.rjust  "a".rjust(3)
str.rpartition  "a.b.c".rpartition(".")
str.rsplit  "a.b.c".rsplit(".", 1)
str.rstrip  "a ".rstrip()
str.split  "a b".split()
str.splitlines  "a\\nb".splitlines()
str.startswith  "abc".startswith(("a", "b"))
str.strip  " a ".strip()
str.swapcase  "aB".swapcase()
str.title  "ab".title()
str.translate  "a".translate({97: "b"})
str.upper  "abc".upper()
str.zfill  "1".zfill(3)
bytes.decode  b"abc".decode()
bytes.endswith  b"abc".endswith(b"c")
bytes.find  b"abc".find(b"c")
bytes.hex  b"abc".hex()
bytes.fromhex  bytes.fromhex("616263")
bytes.join  b",".join([b"a", b"b"])
bytes.lower  b"A".lower()
bytes.replace  b"abc".replace(b"b", b"x")
bytes.split  b"a b".split()
bytes.startswith  b"abc".startswith(b"a")
bytes.strip  b" a ".strip()
bytes.upper  b"a".upper()
int.as_integer_ratio  (3).as_integer_ratio()
int.bit_count  (7).bit_count()
int.bit_length  (7).bit_length()
int.conjugate  (7).conjugate()
int.from_bytes  int.from_bytes(b"\\x01\\x02", "big")
int.to_bytes  (258).to_bytes(2, "big")
int.__ceil__  (3).__ceil__()
int.__floor__  (3).__floor__()
int.__round__  (3).__round__()
int.__trunc__  (3).__trunc__()
float.as_integer_ratio  (0.5).as_integer_ratio()
float.conjugate  (0.5).conjugate()
float.fromhex  float.fromhex("0x1p3")
float.hex  (0.5).hex()
float.is_integer  (2.0).is_integer()
float.__ceil__  (2.5).__ceil__()
float.__floor__  (2.5).__floor__()
float.__round__  (2.5).__round__()
float.__trunc__  (2.5).__trunc__()
complex.conjugate  complex(1, 2).conjugate()
slice.indices  slice(1, None).indices(5)
math.acos  math.acos(0.5)
math.acosh  math.acosh(1.5)
math.asin  math.asin(0.5)
math.asinh  math.asinh(0.5)
math.atan  math.atan(0.5)
math.atan2  math.atan2(1.0, 2.0)
math.atanh  math.atanh(0.5)
math.cbrt  math.cbrt(8.0)
math.ceil  math.ceil(1.5)
math.comb  math.comb(5, 2)
math.copysign  math.copysign(1.0, -2.0)
math.cos  math.cos(0.5)
math.cosh  math.cosh(0.5)
math.degrees  math.degrees(1.0)
math.dist  math.dist([0, 0], [3, 4])
math.erf  math.erf(0.5)
math.erfc  math.erfc(0.5)
math.exp  math.exp(0.5)
math.exp2  math.exp2(3.0)
math.expm1  math.expm1(0.5)
math.fabs  math.fabs(-0.5)
math.factorial  math.factorial(5)
math.floor  math.floor(1.5)
math.fmod  math.fmod(7.0, 3.0)
math.frexp  math.frexp(8.0)
math.fsum  math.fsum([0.1, 0.2])
math.gamma  math.gamma(3.5)
math.gcd  math.gcd(12, 18)
math.hypot  math.hypot(3.0, 4.0)
math.isclose  math.isclose(1.0, 1.0 + 1e-12)
math.isfinite  math.isfinite(1.0)
math.isinf  math.isinf(1.0)
math.isnan  math.isnan(1.0)
math.isqrt  math.isqrt(17)
math.lcm  math.lcm(4, 6)
math.ldexp  math.ldexp(0.5, 3)
math.lgamma  math.lgamma(3.5)
math.log  math.log(2.0)
math.log10  math.log10(2.0)
math.log1p  math.log1p(0.5)
math.log2  math.log2(8)
math.modf  math.modf(1.5)
math.nextafter  math.nextafter(1.0, 2.0)
math.perm  math.perm(5, 2)
math.pow  math.pow(2.0, 3.0)
math.prod  math.prod([2, 3, 4])
math.radians  math.radians(180.0)
math.remainder  math.remainder(7.0, 3.0)
math.sin  math.sin(0.5)
math.sinh  math.sinh(0.5)
math.sqrt  math.sqrt(2.0)
math.tan  math.tan(0.5)
math.tanh  math.tanh(0.5)
math.trunc  math.trunc(1.5)
math.ulp  math.ulp(1.0)
cmath.exp  cmath.exp(1j)
cmath.phase  cmath.phase(1j)
cmath.sqrt  cmath.sqrt(-1)
operator.index  operator.index(3)
operator.length_hint  operator.length_hint([1, 2])
operator.countOf  operator.countOf([1, 2, 1], 1)
operator.indexOf  operator.indexOf([1, 2, 1], 2)
operator.concat  operator.concat([1], [2])
operator.abs  operator.abs(-3)
re.Pattern.match  re.compile("a+").match("aab").group()
re.Pattern.search  re.compile("b").search("aab").start()
re.Pattern.fullmatch  re.compile("a").fullmatch("b")
re.Pattern.findall  re.compile("a").findall("aba")
re.Pattern.split  re.compile(",").split("a,b")
re.Pattern.finditer  [m.group() for m in re.compile("a").finditer("aba")]
posix.fspath  os.path.join("a", "b")
re.Match.group  re.compile("(a)").match("a").group(1)
re.Match.groups  re.compile("(a)").match("a").groups()
re.Match.groupdict  re.compile("(?P<x>a)").match("a").groupdict()
re.Match.start  re.compile("a").match("a").start()
re.Match.end  re.compile("a").match("a").end()
re.Match.span  re.compile("a").match("a").span()
_struct.pack  struct.pack("<i", 5)
_struct.unpack  struct.unpack("<i", b"\\x05\\0\\0\\0")
_struct.calcsize  struct.calcsize("<i")
binascii.crc32  binascii.crc32(b"abc")
binascii.hexlify  binascii.hexlify(b"abc")
_bisect.bisect_left  bisect.bisect_left([1, 3, 5], 3)
_bisect.bisect_right  bisect.bisect_right([1, 3, 5], 3)
dlc._C.is_grad_enabled  dlc.is_grad_enabled()
dlc._C.get_default_dtype  dlc.get_default_dtype()
dlc._C._is_compiling  dlc.compiler.is_compiling() in (True, False)
dlc._C.promote_types  dlc.promote_types(dlc.float32, dlc.float64)
dlc._C.can_cast  dlc.can_cast(dlc.int32, dlc.float32)
dlc._C.finfo  dlc.finfo(dlc.float32).max
dlc._C.iinfo  dlc.iinfo(dlc.int32).max
dlc._C.device  dlc.device("cpu").type
dlc._C.get_num_threads  dlc.get_num_threads() > 0
"""

_STRUCTURAL = """
list  list((x, 1))[1]
tuple  tuple([x, 1])[1]
enumerate  [i for i, _ in enumerate([x, x], 3)]
zip  [b for a, b in zip([x, x], (1, 2))]
list.copy  [1, x].copy()[0]
dict.copy  {"a": 1}.copy()
collections.deque.copy  list(deque([1, 2]).copy())
collections.deque.count  deque([1, 2]).count(1)
collections.deque.index  deque([1, 2]).index(2)
collections.deque.__reversed__  list(reversed(deque([1, 2])))
itertools.chain  list(itertools.chain([1], (2,)))
itertools.chain.from_iterable  list(itertools.chain.from_iterable([[1], [2]]))
itertools.combinations  list(itertools.combinations([1, 2, 3], 2))
itertools.combinations_with_replacement  len(list(itertools.combinations_with_replacement([1, 2], 2)))
itertools.compress  list(itertools.compress([1, 2], [1, 0]))
itertools.count  next(itertools.count(5))
itertools.cycle  next(itertools.cycle([1, 2]))
itertools.islice  list(itertools.islice([1, 2, 3], 1, None))
itertools.pairwise  list(itertools.pairwise([1, 2, 3]))
itertools.permutations  len(list(itertools.permutations([1, 2, 3])))
itertools.product  list(itertools.product([1, 2], "ab"))
itertools.tee  list(itertools.tee([1, 2])[1])
itertools.zip_longest  list(itertools.zip_longest([1, 2], [3]))
"""

_THROUGH = """
super  super(Child, Child()).name()
object  type(object()) is object
slice  slice(1, 2, 3).stop
itertools.repeat  list(itertools.repeat(x, 2))[1]
staticmethod  staticmethod(len).__func__([1])
classmethod  classmethod(len).__func__([1])
property  property(len).fget([1])
functools.partial  functools.partial(pow, 2)(3)
types.SimpleNamespace  types.SimpleNamespace
types.GeneratorType.send  drive(counter(3))
types.GeneratorType.throw  thrown(counter(3))
types.GeneratorType.close  counter(3).close()
_weakref.ref  weakref.ref(Child) is not None
types.MethodType  types.MethodType(len, [1])()
dlc._C._mark_state  dlc._C._mark_state(5)
"""

_STORES = """
list.append  done(lambda l: l.append(x), [1])
list.insert  done(lambda l: l.insert(0, 5), [1])
list.clear  done(lambda l: l.clear(), [1])
list.reverse  done(lambda l: l.reverse(), [1, 2])
set.add  done(lambda s: s.add(2), {1})
set.clear  done(lambda s: s.clear(), {1})
dict.clear  done(lambda d: d.clear(), {1: 2})
collections.deque.append  list(done(lambda d: d.append(2), deque([1])))
collections.deque.appendleft  list(done(lambda d: d.appendleft(2), deque([1])))
collections.deque.clear  list(done(lambda d: d.clear(), deque([1])))
collections.deque.insert  list(done(lambda d: d.insert(0, 3), deque([1])))
collections.deque.rotate  list(done(lambda d: d.rotate(1), deque([1, 2])))
collections.deque.reverse  list(done(lambda d: d.reverse(), deque([1, 2])))
collections.OrderedDict.move_to_end  done(lambda d: d.move_to_end("a"), OrderedDict(a=1, b=2))
collections.OrderedDict.clear  done(lambda d: d.clear(), OrderedDict(a=1, b=2))
"""

_EXTENDS = """
list.extend  done(lambda l: l.extend((2, 3)), [1])
set.update  done(lambda s: s.update([2]), {1})
set.intersection_update  done(lambda s: s.intersection_update([2]), {1, 2})
set.difference_update  done(lambda s: s.difference_update([2]), {1, 2})
set.symmetric_difference_update  done(lambda s: s.symmetric_difference_update([2]), {1, 2})
collections.deque.extend  list(done(lambda d: d.extend([2]), deque([1])))
collections.deque.extendleft  list(done(lambda d: d.extendleft([2, 3]), deque([1])))
"""

_TAKES = """
list.remove  done(lambda l: l.remove(1), [1, 2])
set.remove  done(lambda s: s.remove(1), {1, 2})
set.discard  done(lambda s: s.discard(1), {1, 2})
set.pop  {1}.pop()
dict.popitem  {1: 2}.popitem()
collections.OrderedDict.popitem  OrderedDict(a=1).popitem()
collections.deque.pop  deque([1, 2]).pop()
collections.deque.popleft  deque([1, 2]).popleft()
collections.deque.remove  list(done(lambda d: d.remove(1), deque([1, 2])))
"""

_CALLS = """
map  list(map(float, [1, 2]))
itertools.starmap  list(itertools.starmap(pow, [(2, 3)]))
itertools.accumulate  list(itertools.accumulate([1, 2, 3], operator.mul))
re.Pattern.sub  re.compile("a").sub(lambda m: m.group() * 2, "aba") + re.sub("b", "x", "ab")
re.Pattern.subn  re.compile("a").subn("b", "aba")
functools.reduce  functools.reduce(lambda a, b: a * b, [1, 2, 3])
"""

_TESTS = """
filter  list(filter(lambda i: i > 1, [1, 2, 3]))
itertools.takewhile  list(itertools.takewhile(lambda i: i < 2, [1, 2, 3]))
itertools.dropwhile  list(itertools.dropwhile(lambda i: i < 2, [1, 2, 3]))
itertools.filterfalse  list(itertools.filterfalse(lambda i: i < 2, [1, 2, 3]))
"""

_OWN = """
groups itertools.groupby  [(k, list(g)) for k, g in itertools.groupby([1, 1, 2], lambda i: i)]
deferred print  print("text", 1)
deferred time.sleep  time.sleep(0)
warn _warnings.warn  warnings.warn("a", DeprecationWarning)
write _io.TextIOWrapper.write  sys.stdout.write("") and None
write _io.StringIO.write  out.write("text")
flush _io.TextIOWrapper.flush  sys.stdout.flush()
getattr getattr  getattr(Child(), "missing", 5)
hasattr hasattr  hasattr(Child(), "name")
setattr setattr  done(lambda o: setattr(o, "a", 1), Child()).a
delattr delattr  changed(Child()).b
isinstance isinstance  isinstance(1, (int, str))
issubclass issubclass  issubclass(Child, Base)
callable callable  callable(len)
vars vars  math is not None
str str  str(1.5)
repr repr  repr([1, "a"])
format format  format(1.5, ".2f")
int int  int("12", 10) + int(2.5)
float float  float("1.5") + float(2)
bool bool  bool([])
abs abs  abs(-2)
pow pow  pow(2, 3, 5)
sum sum  sum([1, 2.5], 1)
min min  min([3, 1, 2]) + min(4, 5, key=lambda i: -i)
max max  max(3, 1) + max([], default=7)
any any  any([0, 1])
all all  all([0, 1])
sorted sorted  sorted([3, 1, 2], key=lambda i: -i)
list_sort list.sort  done(lambda l: l.sort(reverse=True), [1, 3, 2])
round round  round(2.567, 2)
len len  len([1, 2]) + len("abc") + len(range(3))
iter iter  list(iter([1, 2]))
next next  next(iter([]), 5)
reversed reversed  list(reversed([1, 2]))
join str.join  ", ".join(["a", "b"])
new_set set  sorted(set([2, 1]))
new_set frozenset  sorted(frozenset([2, 1]))
new_dict dict  dict([("a", 1)], b=2)
new_dict collections.OrderedDict  list(OrderedDict([("b", 1), ("a", 2)]))
new_defaultdict collections.defaultdict  defaultdict(list)["a"]
new_deque collections.deque  list(deque([1, 2, 3], maxlen=2))
item_method dict.__getitem__  {"a": 1}.__getitem__("a")
item_method list.__getitem__  [1, 2].__getitem__(1)
contains_method set.__contains__  {1, 2}.__contains__(1)
contains_method frozenset.__contains__  frozenset("ab").__contains__("c")
heap _heapq.heappush  done(lambda h: heapq.heappush(h, 1), [2, 3])
heap _heapq.heappop  heapq.heappop([1, 2, 3])
heap _heapq.heapify  done(heapq.heapify, [3, 1, 2])
heap _heapq.heapreplace  heapq.heapreplace([1, 2, 3], 5)
heap _heapq.heappushpop  heapq.heappushpop([1, 2, 3], 0)
count_elements _collections._count_elements  sorted(collections.Counter("abca").items())
dict_get dict.get  {"a": 1}.get("a") + {}.get("b", 2)
dict_contains dict.__contains__  {1: 2}.__contains__(1)
dict_pop dict.pop  {"a": 1}.pop("a") + {}.pop("b", 2)
dict_pop collections.OrderedDict.pop  OrderedDict(a=1).pop("a")
dict_setdefault dict.setdefault  {}.setdefault("a", 3)
dict_setdefault collections.OrderedDict.setdefault  OrderedDict().setdefault("a", 3)
dict_update dict.update  done(lambda d: d.update({"b": 2}, c=3), {"a": 1})
dict_update collections.OrderedDict.update  done(lambda d: d.update(b=2), OrderedDict(a=1))
dict_keys dict.keys  list({"a": 1}.keys())
dict_view dict.values  list({"a": 1}.values())
dict_view dict.items  list({"a": 1}.items())
dict_keys collections.OrderedDict.keys  list(OrderedDict(a=1).keys())
dict_view collections.OrderedDict.values  list(OrderedDict(a=1).values())
dict_view collections.OrderedDict.items  list(OrderedDict(a=1).items())
heap _heapq._heapreplace_max  heapq.nsmallest(1, [3, 1, 2])
heap _heapq._heapify_max  heapq.nsmallest(1, [3, 1, 2])
heap _heapq._heappop_max  heapq.nsmallest(1, [3, 1, 2])
heap _bisect.insort_right  done(lambda h: bisect.insort(h, 2), [1, 3])
list_pop list.pop  [1, 2].pop() + [1, 2].pop(0)
itemgetter operator.itemgetter  operator.itemgetter(0, 1)([5, 6])
attrgetter operator.attrgetter  operator.attrgetter("name")(Child()) is not None
methodcaller operator.methodcaller  operator.methodcaller("name")(Child())
op_add operator.add  operator.add(1, 2)
op_sub operator.sub  operator.sub(1, 2)
op_mul operator.mul  operator.mul(3, 2)
op_matmul operator.matmul  operator.matmul(x, x)
op_truediv operator.truediv  operator.truediv(1, 2)
op_floordiv operator.floordiv  operator.floordiv(7, 2)
op_mod operator.mod  operator.mod(7, 2)
op_pow operator.pow  operator.pow(2, 3)
op_and operator.and_  operator.and_(6, 3)
op_or operator.or_  operator.or_(6, 3)
op_xor operator.xor  operator.xor(6, 3)
op_lshift operator.lshift  operator.lshift(1, 3)
op_rshift operator.rshift  operator.rshift(8, 2)
op_eq operator.eq  operator.eq(1, 1)
op_ne operator.ne  operator.ne(1, 1)
op_lt operator.lt  operator.lt(1, 2)
op_le operator.le  operator.le(1, 2)
op_gt operator.gt  operator.gt(1, 2)
op_ge operator.ge  operator.ge(1, 2)
op_is operator.is_  operator.is_(None, None)
op_is_not operator.is_not  operator.is_not(None, 1)
op_pos operator.pos  operator.pos(3)
op_neg operator.neg  operator.neg(3)
op_invert operator.invert  operator.invert(3)
op_contains operator.contains  operator.contains([1, 2], 2)
op_truth operator.truth  operator.truth([1])
op_not operator.not_  operator.not_([1])
op_getitem operator.getitem  operator.getitem([1, 2], 1)
op_setitem operator.setitem  done(lambda l: operator.setitem(l, 0, 5), [1, 2])
tensor_item dlc._C.Tensor.item  x.shape
tensor_list dlc._C.Tensor.tolist  x.shape
tensor_size dlc._C.Tensor.size  x.size(0) + len(x.size())
tensor_numel dlc._C.Tensor.numel  x.numel()
tensor_numel dlc._C.Tensor.nelement  x.nelement()
tensor_layout dlc._C.Tensor.stride  x.stride()
tensor_layout dlc._C.Tensor.storage_offset  x.storage_offset()
tensor_layout dlc._C.Tensor.is_contiguous  x.is_contiguous()
tensor_property dlc._C.Tensor.dim  x.dim()
tensor_property dlc._C.Tensor.ndimension  x.ndimension()
tensor_property dlc._C.Tensor.element_size  x.element_size()
tensor_property dlc._C.Tensor.is_floating_point  x.is_floating_point()
tensor_property dlc._C.Tensor.is_complex  x.is_complex()
tensor_property dlc._C.Tensor.is_signed  x.is_signed()
tensor_property dlc._C.Tensor.get_device  x.get_device()
tensor_property dlc._C.Tensor.cpu  x.cpu().shape
tensor_change dlc._C.Tensor.requires_grad_  (x * 1).detach().requires_grad_().requires_grad
tensor_change dlc._C.Tensor.detach_  (x * 1).detach_().requires_grad
tensor_change dlc._C.Tensor.retain_grad  x.shape
op dlc._C.Tensor.to  x.to(dlc.float64).dtype
op dlc._C.Tensor.float  x.float().dtype
op dlc._C.Tensor.double  x.double().dtype
op dlc._C.Tensor.half  x.half().dtype
op dlc._C.Tensor.bfloat16  x.bfloat16().dtype
op dlc._C.Tensor.long  x.long().dtype
op dlc._C.Tensor.int  x.int().dtype
op dlc._C.Tensor.short  x.short().dtype
op dlc._C.Tensor.char  x.char().dtype
op dlc._C.Tensor.byte  x.byte().dtype
op dlc._C.Tensor.bool  x.bool().dtype
op dlc._C.Tensor.type_as  x.type_as(x).dtype
op dlc._C.Tensor.backward  x.shape
new_tensor dlc._C.tensor  dlc.tensor([1.0, 2.0]).shape
new_tensor dlc._C.as_tensor  dlc.as_tensor(x).shape + dlc.as_tensor([1]).shape
op dlc._C.grad  x.shape
op dlc._C.backward  x.shape
op dlc._C.Tensor._make_subclass  x.shape
tensor_property dlc._C.result_type  dlc.result_type(x, 1.0)
op dlc._C.Size  dlc.Size([1, 2]).numel()
pure dlc._C.Size.numel  x.shape.numel()
op dlc._C.no_grad  grads(dlc.no_grad())
op dlc._C.enable_grad  grads(dlc.enable_grad())
op dlc._C.set_grad_enabled  grads(dlc.set_grad_enabled(False))
op dlc._C.inference_mode  grads(dlc.inference_mode())
id id  {id(x): 1}[id(x)] + (id(x) == id(dlc))
input input  x.shape
input open  x.shape
input time.time  x.shape
input time.perf_counter  x.shape
input time.monotonic  x.shape
input time.time_ns  x.shape
input time.perf_counter_ns  x.shape
input time.monotonic_ns  x.shape
input time.process_time  x.shape
input posix.getpid  x.shape
input posix.urandom  x.shape
input _thread.get_ident  x.shape
input _random.Random.seed  x.shape
input _random.Random.random  x.shape
input _random.Random.getrandbits  x.shape
input dlc._C.manual_seed  x.shape
"""

_KINDS = {
    "pure": _PURE,
    "structural": _STRUCTURAL,
    "through": _THROUGH,
    "stores": _STORES,
    "extends": _EXTENDS,
    "takes": _TAKES,
    "calls": _CALLS,
    "tests": _TESTS,
}


def table():
    """All lines: kind, name of the function, and an example as an expression of a tensor `x`."""
    for kind, lines in {**_KINDS, "": _OWN}.items():
        for line in lines.strip().splitlines():
            what, example = line.split("  ", 1)
            own_kind, _, name = what.rpartition(" ")
            yield own_kind or kind, name, example


def resolve(name):
    """The object of a dotted name: of builtins, or of a module."""
    parts = name.split(".")
    found, rest = builtins, parts
    if not hasattr(builtins, parts[0]):
        # The longest beginning that is a module; nothing else is imported, whatever lies on the path.
        modules = [".".join(parts[:count]) for count in range(len(parts) - 1, 0, -1)]
        module = next(m for m in modules if m in sys.modules or m.split(".")[0] in _ROOTS and _is_module(m))
        found, rest = importlib.import_module(module), parts[module.count(".") + 1 :]
    for part in rest:
        found = vars(found)[part] if isinstance(found, type) and part in vars(found) else getattr(found, part)
    return found.__get__(None, object) if isinstance(found, staticmethod) else found


def _is_module(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, AttributeError, ValueError):
        return False


def entries():
    """(kind, function) for each line whose function this interpreter has."""
    result = []
    for kind, name, _ in table():
        try:
            result.append((kind, resolve(name)))
        except (AttributeError, ImportError):
            pass
    return result
