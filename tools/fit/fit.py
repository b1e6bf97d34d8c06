"""Fits the polynomials of runtime/scalar: Lawson-weighted least squares on Chebyshev nodes.

Each coefficient is rounded to its storage type, lowest order first, and the others are fitted again to the rounded
ones. Prints hex floats to paste into the headers, and the largest weighted error. Needs numpy and mpmath.
"""

import mpmath as mp
import numpy as np

mp.mp.dps = 40


def lawson(matrix, target, weight, rounds=60):
    """Coefficients that minimise max |weight * (target - matrix @ c)|, by iteratively reweighted least squares."""
    scale = np.ones(len(target)) / len(target)
    best, best_error = None, np.inf
    for _ in range(rounds):
        row = weight * np.sqrt(scale)
        c, *_ = np.linalg.lstsq(matrix * row[:, None], target * row, rcond=None)
        residual = np.abs(weight * (target - matrix @ c))
        if residual.max() < best_error:
            best, best_error = c, residual.max()
        scale *= residual
        scale /= scale.sum()
    return best, best_error


def fit(f, degree, low, high, weight, dtype=np.float32, nodes=1200):
    """Polynomial of `degree` for f on [low, high]; `weight(x)` turns its error into relative error of the result."""
    t = np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)
    x = 0.5 * (low + high) + 0.5 * (high - low) * t
    y = np.array([float(f(mp.mpf(float(v)))) for v in x])
    w = np.array([abs(float(weight(mp.mpf(float(v))))) for v in x])
    span = max(abs(low), abs(high))
    basis = np.stack([(x / span) ** k for k in range(degree + 1)], axis=1)
    fixed, target = [], y.copy()
    for k in range(degree + 1):
        c, _ = lawson(basis[:, k:], target, w)
        rounded = float(dtype(c[0] / span**k))
        fixed.append(rounded)
        target = target - rounded * x**k
    return fixed, np.max(w * np.abs(target))


def fit_rational(f, top, bottom, low, high, weight, dtype=np.float32, nodes=1500):
    """top/bottom degree rational p/q with q(0) = 1: linearised, repeated with 1/q as weight."""
    t = np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)
    x = 0.5 * (low + high) + 0.5 * (high - low) * t
    y = np.array([float(f(mp.mpf(float(v)))) for v in x])
    w = np.array([abs(float(weight(mp.mpf(float(v))))) for v in x])
    p = np.stack([x**k for k in range(top + 1)], axis=1)
    q = np.stack([x**k for k in range(1, bottom + 1)], axis=1)
    matrix = np.concatenate([p, -y[:, None] * q], axis=1)
    denominator = np.ones(nodes)
    norm = np.abs(matrix).max(axis=0)
    for _ in range(12):
        c, _ = lawson(matrix / norm, y, w / denominator)
        c = c / norm
        denominator = 1 + q @ c[top + 1 :]
    # The denominator is rounded first; the numerator is fitted again to the rounded one.
    qc = [float(dtype(v)) for v in c[top + 1 :]]
    denominator = 1 + q @ np.array(qc)
    fixed, target = [], y * denominator
    for k in range(top + 1):
        c, _ = lawson(p[:, k:], target, w / denominator)
        fixed.append(float(dtype(c[0])))
        target = target - fixed[-1] * x**k
    return fixed, [1.0] + qc, np.max(w * np.abs(target / denominator))


def show(name, coefficients, error, dtype=np.float32):
    """One C++ array, lowest order first."""
    suffix = "f" if dtype is np.float32 else ""
    text = ", ".join(c.hex().replace("0000000p", "p") + suffix for c in coefficients)
    print(f"// {name}: largest relative error {error:.3g} ({error * 2**24:.3f} ulp of f32)\n{{{text}}}\n")


def guarded(f, at_zero):
    """f with its limit at 0."""
    return lambda x: mp.mpf(at_zero) if abs(x) < mp.mpf("1e-12") else f(x)


def root(f):
    """f of sqrt(z): fits in z = x*x."""
    return lambda z: f(mp.sqrt(abs(z)))


def main():
    ln2 = float(mp.log(2))
    show(
        "exp: (e^r - 1 - r) / r^2",
        *fit(guarded(lambda r: (mp.expm1(r) - r) / r**2, 0.5), 5, -0.51 * ln2, 0.51 * ln2, lambda r: r**2 / mp.exp(r)),
    )
    show(
        "expm1: (e^r - 1 - r) / r^2, relative to e^r - 1",
        *fit(
            guarded(lambda r: (mp.expm1(r) - r) / r**2, 0.5),
            5,
            -0.51 * ln2,
            0.51 * ln2,
            guarded(lambda r: r**2 / mp.expm1(r), 0),
        ),
    )
    show(
        "exp2: (2^r - 1) / r",
        *fit(guarded(lambda r: mp.expm1(r * mp.log(2)) / r, mp.log(2)), 6, -0.505, 0.505, lambda r: r / mp.power(2, r)),
    )
    low, high = float(mp.sqrt(0.5)) - 1, float(mp.sqrt(2)) - 1
    show(
        "log: (log(1+f) - f + f^2/2) / f^3",
        *fit(
            guarded(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, mp.mpf(1) / 3),
            7,
            low,
            high,
            guarded(lambda f: f**3 / mp.log1p(f), 0),
        ),
    )
    show(
        "tanh: (tanh x - x) / x^3 in z = x^2, x <= 0.625",
        *fit(
            root(guarded(lambda x: (mp.tanh(x) - x) / x**3, -mp.mpf(1) / 3)),
            5,
            0,
            0.625**2,
            root(guarded(lambda x: x**3 / mp.tanh(x), 0)),
        ),
    )
    quarter = float(mp.pi) / 4 * 1.01
    show(
        "sin: (sin r - r) / r^3 in r^2",
        *fit(
            root(guarded(lambda x: (mp.sin(x) - x) / x**3, -mp.mpf(1) / 6)),
            3,
            0,
            quarter**2,
            root(guarded(lambda x: x**3 / mp.sin(x), 0)),
        ),
    )
    show(
        "cos: (cos r - 1 + r^2/2) / r^4 in r^2",
        *fit(
            root(guarded(lambda x: (mp.cos(x) - 1 + x * x / 2) / x**4, mp.mpf(1) / 24)),
            3,
            0,
            quarter**2,
            root(lambda x: x**4 / mp.cos(x)),
        ),
    )
    show(
        "tan: (tan r - r) / r^3 in r^2",
        *fit(
            root(guarded(lambda x: (mp.tan(x) - x) / x**3, mp.mpf(1) / 3)),
            6,
            0,
            quarter**2,
            root(guarded(lambda x: x**3 / mp.tan(x), 0)),
        ),
    )
    show(
        "atan: (atan x - x) / x^3 in x^2, x <= 1",
        *fit(
            root(guarded(lambda x: (mp.atan(x) - x) / x**3, -mp.mpf(1) / 3)),
            8,
            0,
            1.0,
            root(guarded(lambda x: x**3 / mp.atan(x), 0)),
        ),
    )
    show(
        "asin: (asin x - x) / x^3 in x^2, x <= 0.5",
        *fit(
            root(guarded(lambda x: (mp.asin(x) - x) / x**3, mp.mpf(1) / 6)),
            5,
            0,
            0.25,
            root(guarded(lambda x: x**3 / mp.asin(x), 0)),
        ),
    )
    show(
        "sinh: (sinh x - x) / x^3 in x^2, x <= 1",
        *fit(
            root(guarded(lambda x: (mp.sinh(x) - x) / x**3, mp.mpf(1) / 6)),
            3,
            0,
            1.0,
            root(guarded(lambda x: x**3 / mp.sinh(x), 0)),
        ),
    )
    show(
        "erf: (erf x - x) / x in x^2, x <= 1",
        *fit(
            root(guarded(lambda x: (mp.erf(x) - x) / x, 2 / mp.sqrt(mp.pi) - 1)),
            6,
            0,
            1.0,
            root(guarded(lambda x: x / mp.erf(x), mp.sqrt(mp.pi) / 2)),
        ),
    )
    top, bottom, error = fit_rational(lambda t: mp.erfc(t + 2.25), 7, 4, -1.25, 1.68, lambda x: 1)
    show("erfc(t + 2.25) on [1, 3.93], numerator (absolute error)", top, error)
    show("erfc(t + 2.25) on [1, 3.93], denominator", bottom, error)
    double = np.float64
    s = float((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) * 1.001
    show(
        "log2 in f64: 2 atanh(s) / (s ln 2) in s^2",
        *fit(
            root(guarded(lambda x: 2 * mp.atanh(x) / (x * mp.log(2)), 2 / mp.log(2))),
            5,
            0,
            s * s,
            root(guarded(lambda x: x * mp.log(2) / (2 * mp.atanh(x)), mp.log(2) / 2)),
            double,
        ),
        double,
    )
    show("exp2 in f64: 2^r", *fit(lambda r: mp.power(2, r), 7, -0.5, 0.5, lambda r: 1 / mp.power(2, r), double), double)


if __name__ == "__main__":
    main()
