"""What random programs are made of: templates of expressions and statements by the type of their value.

A hole `<T>` is filled by an expression of type T, `<LI!a>` by the name of a variable of type LI that later `<=a>` names
again, `<I;q:I>` by an expression in whose scope q is an int, `<i>`, `<k>`, `<f>`, `<s>` by literals. Floats are small
whole or dyadic numbers almost everywhere, so that branches never depend on the last bits of a sum.
"""

# T float tensor [n, 4], V float tensor [4], Z 0-d float tensor, I F B S numbers and text, LI LT lists of ints and tensors,
# DI DT dicts from text, OD OrderedDict, QI deque of ints, SI set of ints, O an object with k, items and buf, P a
# namedtuple (x, k), C a dataclass (k, scale, tags).
EXPRESSIONS = {
    "T": [
        "(-<T>)", "(<T> + <T>)", "(<T> - <T>)", "(<T> * <T>).clamp(-8, 8)", "<T>.abs()", "<T>.relu()", "(<T> + <I>)", "(<T> * <i>)",
        "(<I> - <T>)", "(<T> * 0.5)", "(<T> * <F>)", "<T>.clamp(-4, 4)", "(<T> + <V>)", "(<T> * <V>).clamp(-9, 9)", "(<T> - <Z>)",
        "dlc.where(<T> > <i>, <T>, <T>)", "dlc.maximum(<T>, <T>)", "<T>.flip(0)", "<T>.roll(1, 0)", "<T>.t().t()", "<T>.clone()",
        "<T>.reshape(-1).view(-1, 4)", "<T>[:, dlc.tensor([1, 0, 3, 2])]", "dlc.stack([<T>, <T>]).sum(0)", "sum(<LT>, <T>)",
        "(<T> if <B> else <T>)", "(<T> + len(<S>))", "(<T> + <T>.sum(0))", "(<T> * <T>.amax(1, keepdim=True)).clamp(-8, 8)",
        "helper(<T>, <I>)", "helper(<T>)", "helper(<T>, k=<I>)", "chain(<T>, <I>, <I>)", "descend(<T>, <I> % 4)", "twice(<T>)", "<P>.x",
        "MODEL(<T>)", "<T>.detach()", "(lambda q: <T;q:T>)(<T>)", "functools.reduce(lambda q, r: q + r, <LT>, <T>)", "<T>.masked_fill(<T> > <i>, <i>)",
        "((<T> @ <T>.t()).clamp(-3, 3) @ <T>)", "[<T>, <T>][<I> % 2]", "{'a': <T>, 'b': <T>}.get(<s>, <T>)", "F.relu(<T>)",
        "(w := <T>)", "<O>.scaled(<T>)", "<O>(<T>)", "Cfg.scale_by(<T>)", "(<T> + dlc.arange(4.0))", "<T>.expand_as(<T>)",
        "dlc.zeros_like(<T>)", "max([<T>, <T>], key=lambda q: float(q.sum()))", "next(iter(<LT>), <T>)", "pick(*[<T>, <T>])",
        "apply(lambda q: <T;q:T>, <T>)", "functools.partial(helper, k=<I>)(<T>)", "OPS[<s>](<T>)", "<T>.round()", "dlc.rand_like(<T>)",
        "F.dropout(<T>, 0.5, <B>)", "getattr(<T>, <unary>)()", "(<T> + <Z>.item())", "dlc.cat([<T>, <T>])[: <T>.shape[0]]",
    ],
    "V": [
        "<T>.sum(0)", "<T>[0]", "<T>[-1]", "<T>.amax(0)", "(<V> + <V>)", "(<V> * <i>)", "<V>.clamp(-6, 6)", "dlc.ones(4)", "dlc.full((4,), <F>)",
        "dlc.tensor([1.0, -1.0, <f>, 2.0])", "<O>.buf", "(<V> if <B> else <V>)", "<V>.flip(0)", "<V>[dlc.tensor([3, 2, 1, 0])]", "MODEL.buf", "G_V",
        "dlc.zeros(4).add_(<I>)", "<V>.view(2, 2).t().reshape(4)",
    ],
    "Z": [
        "<T>.sum()", "<V>.sum()", "<T>.max()", "(<Z> + <I>)", "(<Z> * <i>).clamp(-50, 50)", "dlc.tensor(<F>)", "<V>[<I> % 4]", "<T>[<T> > <i>].sum()",
        "(<T> > <i>).sum().float()", "<T>[0, 0]", "<V>.dot(<V>).clamp(-99, 99)",
    ],
    "I": [
        "(<I> + <I>)", "(<I> - <I>)", "(<I> * <I> % 97)", "(<I> % <k>)", "(<I> // <k>)", "(-<I>)", "<T>.shape[0]", "<T>.size(-1)", "<T>.dim()", "len(<LI>)",
        "len(<LT>)", "len(<DI>)", "sum(<LI>)", "max(<I>, <I>)", "min(<I>, <I>, <i>)", "abs(<I>)", "int(<Z>) % 5", "int(<F>)", "(<I> if <B> else <I>)",
        "(<I> and <I>)", "(<I> or <I>)", "<DI>.get(<s>, <i>)", "len(<S>)", "Cfg.k", "<O>.k", "<O>.double", "len(<O>)", "<C>.k", "<P>.k", "int(<B>)",
        "G_I", "(lambda q: q + <I;q:I>)(<I>)", "sum(q * <k> for q in <LI>)", "len([q for q in <LI> if q > <i>])", "<T>[<T> > <i>].numel() % 7",
        "<T>.argmax().item() % 5", "<LI>[<I>] if <LI> and False else <I>", "(<LI> or [<i>])[0]",
        "(<LI> + [<i>])[-1]", "[*<LI>, <i>][0]", "min(<LI>, default=<i>)", "count(<I>)", "divmod(<I>, <k>)[1]", "(<I> & 7)", "(<I> ^ 3)", "(<I> << 1) % 64",
        "round(<F>)", "next((q for q in <LI> if q > <i>), <i>)", "fib(<I> % 6)", "<QI>[0] if <QI> and False else <i>", "sorted(<LI> + [<i>])[0]", "int(str(<k>))",
        "sum(map(lambda q: q % <k>, <LI>))", "ord(<s>)", "<S>.count('a')", "hash(<k>)", "math.gcd(<I>, <k>)", "math.floor(<F>)", "<T>.numel() // 4", "int(<Z> > <i>)",
        "dict(a=<I>, b=<I>)[<ab>]", "[<I>, <I>].index(<i>) if False else <I>", "(<I>).bit_length()", "isinstance(<any>, int) + <I>", "len(<SI>)", "len(<QI>)",
        "sum(e for _, e in enumerate(<LI>))", "sum(a * b for a, b in zip(<LI>, <LI>))", "operator.add(<I>, <I>)", "(q if (q := <I>) > 2 else 3)", "Color.RED.value",
        "Mode(<I> % 3).value", "total(<I>, <I>)", "total(*<LI>)", "total(b=<I>)", "total(**{'b': <I>})",
    ],
    "F": [
        "float(<I>)", "(<F> + <F>)", "(<F> * 0.5)", "(<I> / 4)", "<Z>.item()", "float(<Z>)", "<f>", "abs(<F>)", "max(<F>, <f>)", "Cfg.scale", "<C>.scale", "(<F> if <B> else <F>)",
        "math.sqrt(abs(<I>) // 4 * 4)", "float(<S> == 'a')", "round(<F>, 1)", "min(<F>, <F>)", "(<F> - <I>)", "math.copysign(2.0, <F>)", "G_F",
    ],
    "B": [
        "(<I> > <I>)", "(<I> == <I>)", "(<I> <= <i>)", "(<F> < <f>)", "(not <B>)", "(<B> and <B>)", "(<B> or <B>)", "(<i> < <I> < 9)", "(<s> in <DI>)", "(<I> in <LI>)",
        "bool(<LI>)", "(<Z> > <i>)", "bool(<Z>)", "(<T>.sum() > <i>)", "bool((<T> > <i>).any())", "bool((<T> > <i>).all())", "(<S> == <S>)", "<S>.startswith('a')", "<O>.flag",
        "Cfg.flag", "(<name> is None)", "(<name> is <name>)", "isinstance(<any>, (list, dict))", "any(q > <i> for q in <LI>)", "all(q < <i> for q in <LI>)", "(<T>.shape[0] > 2)",
        "(<T>.shape == (3, 4))", "callable(<any>)", "hasattr(<any>, 'k')", "(<I> not in <SI>)", "MODEL.training", "<T>.requires_grad", "dlc.is_grad_enabled()", "(<LI> == <LI>)",
        "({<I>, 1} <= {1, 2, <I>})", "(<S> < <S>)", "dlc.equal(<T>, <T>)", "<T>.is_contiguous()", "(<T> is <T>)", "bool(<T>.numel())", "G_B", "(<O> == <O>)", "(<i> in <O>)",
    ],
    "S": [
        "<s>", "str(<I>)", "f'{<I>}'", "f'{<F>:.2f}|{<I>:>4}'", "f'{<S>!r}'", "(<S> + <S>)[:9]", "<S>.upper()", "'-'.join(map(str, <LI>))[:20]", "'%d/%s' % (<I>, <S>)",
        "'{} {a}'.format(<I>, a=<S>)", "f'{tuple(<T>.shape)}'", "f'{<Z>.item():g}'", "(<S> if <B> else <S>)", "repr((<I>, <S>))", "f'{<B>}'", "type(<any>).__name__", "f'{<Z>}'",
        "<S>.replace('a', 'bc')[:9]", "' '.join(sorted(<DI>))", "<C>.tags and <C>.tags[0] or <S>", "f'{<LI>}'[:20]", "f'{<V>}'", "<S>.strip().title()", "str(<T>.dtype)", "f'{<I>=}'[-3:]",
        "'abc'[<I> % 3]", "Color.RED.name", "repr(<O>)", "'x' * (<I> % 3)", "f'{<k>:0{<k>}d}'[-4:]", "chr(97 + <I> % 3)",
    ],
    "LI": [
        "[<I>, <I>]", "[]", "list(range(<I> % 4))", "[<I;q:I> for q in range(<I> % 4)]", "[q for q in <LI> if <B;q:I>]", "sorted(<LI>)", "<LI>[:2]", "<LI>[::-1]", "(<LI> + <LI>)[:6]",
        "[<I>] * (<I> % 3)", "list(<DI>.values())", "list(map(lambda q: <I;q:I>, <LI>))", "list(reversed(<LI>))", "[*<LI>, <I>][:5]", "G_LI", "<O>.items", "list(<QI>)", "sorted(<SI>)",
        "list(itertools.accumulate(<LI>))", "list(itertools.islice(count_up(<I> % 3), 3))", "<LI>.copy()", "sorted(<LI>, key=lambda q: (q % 3, -q))", "list(filter(None, <LI>))",
        "[q + r for q, r in zip(<LI>, <LI>)]", "<T>.sum(1).long().tolist()", "list(<T>.shape)", "[q for r in [<LI>, [<i>]] for q in r][:6]", "list(evens(<LI>))",
    ],
    "LT": ["[<T>, <T>]", "[<T>]", "[]", "[<T;q:I> for q in range(<I> % 3)]", "[<T;q:T> for q in <LT>]", "(<LT> + [<T>])[:3]", "<LT>[:1]", "list(<DT>.values())", "[*<LT>][-2:]", "list(pieces(<T>, <I> % 3))"],
    "DI": [
        "{<s>: <I>, <s>: <I>}", "dict(a=<I>)", "{}", "{str(q): <I;q:I> for q in range(<I> % 3)}", "{**<DI>, <s>: <I>}", "<OD>", "G_D", "{q: r for q, r in <DI>.items() if <B;r:I>}",
        "dict(zip('abc', <LI>))", "dict(sorted(<DI>.items()))", "(<DI> | {'z': <I>})", "<DI>.copy()", "collections.defaultdict(int, <DI>)", "collections.Counter(<s> + <s>)",
    ],
    "DT": ["{<s>: <T>}", "{'a': <T>, 'b': <T>}", "{}", "{q: <T> for q in 'ab'}", "{q: r + 1 for q, r in <DT>.items()}"],
    "OD": ["collections.OrderedDict(a=<I>, b=<I>, c=<I>)", "G_OD"],
    "QI": ["collections.deque(<LI>, maxlen=4)", "G_Q"],
    "SI": ["{<I>, <I>}", "set(<LI>)", "(<SI> | {<i>})", "(<SI> & {0, 1, 2, 3})", "{q % 3 for q in <LI>}", "G_S", "frozenset(<LI>)"],
    "O": ["OBJ", "Acc(<I>)", "Acc(<I>, [<I>])", "Sub(<I>)"],
    "P": ["Pair(<T>, <I>)", "<P>._replace(k=<I>)"],
    "C": ["Conf(<I>)", "Conf(<I>, scale=<F>)", "dataclasses.replace(<C>, k=<I>)", "CONF"],
}  # fmt: skip

LEAVES = {
    "T": ["dlc.ones(2, 4)", "dlc.arange(8.0).view(2, 4)"],
    "V": ["dlc.ones(4)", "G_V", "dlc.arange(4.0)"],
    "Z": ["dlc.tensor(2.0)", "dlc.tensor(-1.0)"],
    "I": ["<i>", "<i>", "G_I", "Cfg.k", "OBJ.k"],
    "F": ["<f>", "<f>", "G_F", "Cfg.scale"],
    "B": ["True", "False", "G_B", "Cfg.flag"],
    "S": ["<s>", "<s>", "Cfg.name"],
    "LI": ["[1, 2]", "[<i>, 3]", "G_LI"],
    "LT": ["[]"],
    "DI": ["{'a': <i>}", "G_D"],
    "DT": ["{}"],
    "OD": ["G_OD"],
    "QI": ["G_Q"],
    "SI": ["{1, <i>}", "G_S"],
    "O": ["OBJ"],
    "P": ["Pair(dlc.ones(2, 4), <i>)"],
    "C": ["CONF"],
}

# Simple statements: what changes containers, objects, globals and tensors in place.
EFFECTS = [
    "<LI!>.append(<I>)", "<LI!>.insert(0, <I>)", "<LI!>.sort()", "<LI!>.sort(key=lambda q: -q)", "<LI!>.reverse()", "<LI!>.extend(<LI>[:2])",
    "if <LI!a>: <=a>.pop()", "<LI!a>[:] = [q for q in <=a> if q % 2]", "<LI!>[1:2] = [<I>, <I>]", "del <LI!>[:1]", "<LI!a> += [<I>]", "del <LI!>[4:]",
    "<LI!>.clear()", "if <LI!a>: <=a>[0] = <I>", "if <LI!a>: <=a>[-1] += <I>", "<LI!a>.remove(<=a>[0]) if <=a> else None",
    "<DI!>[<s>] = <I>", "<DI!>.update(a=<I>, q=<I>)", "<DI!>.setdefault(<s>, <I>)", "<DI!>.pop(<s>, None)", "<DI!a>[<s>] = <=a>.get('a', 0) + 1",
    "if 'a' in <DI!a>: del <=a>['a']", "if 'a' in <DI!a>: <=a>['a'] += 1", "<DI!>.clear()", "<DI!a> |= {'u': <I>}", "if <DI!a>: <=a>.popitem()",
    "if 'a' in <OD!a>: <=a>.move_to_end('a')", "if 'b' in <OD!a>: <=a>.move_to_end('b', last=False)", "<OD!>['c'] = <I>", "<OD!>.pop('b', None)",
    "<QI!>.append(<I>)", "<QI!>.appendleft(<I>)", "<QI!>.rotate(1)", "if <QI!a>: <=a>.popleft()", "<SI!a>.add(<I>) if isinstance(<=a>, set) else None",
    "G_S.discard(<I>)", "G_S.update(<LI>)", "<O!>.k += 1", "<O!>.k = <I> % 9", "<O!>.items.append(<I>)", "<O!>.bump(<I> % 5)", "<O!>.buf = <V>", "<O!>.extra = <any>", "<O!>.flag = <B>",
    "setattr(<O!>, 'k', <I> % 7)", "<O!>[<I> % 3] = <I>", "<O!>.__dict__['k'] = <I> % 5", "<C!>.k = <I>", "<C!>.tags.append(<S>)", "CONF.tags.append(<s>)", "CONF.scale = <F>", "Cfg.k = <I> % 9", "Cfg.flag = <B>", "Cfg.seen.append(<I>)",
    "Acc.made = Acc.made + 1", "<LT!>.append(<T>)", "<DT!>[<s>] = <T>", "if <LT!a>: <=a>.pop(0)", "<DT!>.pop('a', None)",
    "print(<S>, <I>, <F>)", "print(<I>, end=<s>)", "print(f'{<I>} {<S>}')", "print(*<LI>, sep=',')", "print(<Z>)", "print(<V>)", "print(<DI>)", "LOG.append(<S>)",
    "LOG.append((<I>, <F>))", "logger.info('at %d', <I>)", "warnings.warn(<S>)", "sys.stdout.write(<S>)", "STATE['n'] = STATE.get('n', 0) + 1", "STATE.setdefault('l', []).append(<I>)",
    "STATE[<s>] = <any>", "SEEN.append(<T>.detach())", "del SEEN[:-2]", "random.random()", "LOG.append(random.randint(0, 9))", "next(COUNTER)", "globals()['G_I'] = <I> % 11" ,
    "os.environ['DLC_FUZZ'] = <S>.replace(chr(0), '')", "global_bump()",
]  # fmt: skip

TENSOR_EFFECTS = [
    "<T!> += <T>", "<T!> *= 2", "<T!> -= <I>", "<T!>.add_(<I>)", "<T!>.clamp_(-4, 4)", "<T!>.zero_()", "<T!>[0] = <V>", "<T!>[1:] += 1", "<T!>[:, 0] = <I>", "<T!>.neg_()",
    "<T!a>.copy_(<=a> * 2 - 1)", "<T!>.t().add_(1)", "<T!>.view(-1)[0] = <i>", "<T!>[0].mul_(2)", "<T!>.relu_()", "<T!>.masked_fill_(<B> == (dlc.ones(4) > 0), 1)", "<T!a>[<=a> > 2] = 0",
    "<T!>.fill_(<F>)", "G_V.add_(<i>).clamp_(-9, 9)", "MODEL.buf.add_(1)", "<V!>.add_(1)", "<V!>[<I> % 4] = <I>", "<T!a>.data.add_(1)", "<T!a>.mul_(<=a>.sign())",
]  # fmt: skip

LITERALS = {
    "i": ["0", "1", "2", "3", "-1", "-2", "5"],
    "k": ["1", "2", "3", "4", "7"],
    "f": ["0.5", "1.0", "2.0", "-1.5", "0.25", "3.0"],
    "s": ["'a'", "'b'", "'c'", "'z'"],
    "ab": ["'a'", "'b'"],
    "unary": ["'abs'", "'relu'", "'neg'", "'clone'"],
}
