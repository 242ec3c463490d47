"""The error function, which NumPy lacks."""

from typing import Any

# Cody, "Rational Chebyshev Approximations for the Error Function", Mathematics of Computation 23, 1969:
# erf(x) = x A(x^2) / B(x^2) up to NEAR, and 1 - exp(-x^2) C(x) / D(x) from there to 4.  Up to 6 the latter's error is
# below float64's; beyond, erf is 1.  Coefficients from the highest power down.
NEAR = 0.46875
FAR = 6.0
A = (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2,
     3.20937758913846947e3)  # fmt: skip
B = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
C = (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1,
     2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
     1.23033935479799725e3)  # fmt: skip
D = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
     3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3)  # fmt: skip


def erf(xp: Any, x: Any) -> Any:
    """2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x, to a few units in the last place of float64."""
    size = xp.abs(x)
    near = xp.minimum(size, NEAR)
    square = near * near
    inner = x * (_polynomial(A, square) / _polynomial(B, square))
    far = xp.clip(size, NEAR, FAR)
    outer = xp.copysign(1 - xp.exp(-far * far) * (_polynomial(C, far) / _polynomial(D, far)), x)
    return xp.where(size > NEAR, outer, inner)


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    value = coefficients[0] * x + coefficients[1]
    for coefficient in coefficients[2:]:
        value *= x
        value += coefficient
    return value
