/*
 * Mathematics. The functions do not set errno, and only those that are one instruction of the processor (fabs, sqrt, rint and
 * its relatives, fma, fmax, fmin) raise its exceptions and follow its rounding mode. A long double is a double.
 */
#ifndef MATH_H
#define MATH_H

typedef float float_t;
typedef double double_t;

#define HUGE_VAL __builtin_huge_val()
#define HUGE_VALF __builtin_huge_valf()
#define HUGE_VALL __builtin_huge_vall()
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

#define FP_NAN 0
#define FP_INFINITE 1
#define FP_ZERO 2
#define FP_SUBNORMAL 3
#define FP_NORMAL 4
#define fpclassify(x) __builtin_fpclassify(FP_NAN, FP_INFINITE, FP_NORMAL, FP_SUBNORMAL, FP_ZERO, x)
#define isfinite(x) __builtin_isfinite(x)
#define isinf(x) __builtin_isinf_sign(x)
#define isnan(x) __builtin_isnan(x)
#define isnormal(x) __builtin_isnormal(x)
#define signbit(x) __builtin_signbit(x)
#define isgreater(x, y) __builtin_isgreater(x, y)
#define isgreaterequal(x, y) __builtin_isgreaterequal(x, y)
#define isless(x, y) __builtin_isless(x, y)
#define islessequal(x, y) __builtin_islessequal(x, y)
#define islessgreater(x, y) __builtin_islessgreater(x, y)
#define isunordered(x, y) __builtin_isunordered(x, y)

#define FP_ILOGB0 (-2147483647 - 1)
#define FP_ILOGBNAN (-2147483647 - 1)
#define FP_FAST_FMA 1
#define FP_FAST_FMAF 1

#define MATH_ERRNO 1
#define MATH_ERREXCEPT 2
#define math_errhandling 0

#define M_E 2.71828182845904523536
#define M_LOG2E 1.44269504088896340736
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

/* Each function for double, float and long double. The symbols are not those that the compiler knows (tench.h). */
#define TENCH_MATH(result, name, ...) result name(__VA_ARGS__) __asm__("tench_float_" #name)
#define TENCH_MATH_X(name) \
    TENCH_MATH(double, name, double); \
    TENCH_MATH(float, name##f, float); \
    long double name##l(long double) __asm__("tench_float_" #name)
#define TENCH_MATH_XY(name) \
    TENCH_MATH(double, name, double, double); \
    TENCH_MATH(float, name##f, float, float); \
    long double name##l(long double, long double) __asm__("tench_float_" #name)
#define TENCH_MATH_XA(name, argument) \
    TENCH_MATH(double, name, double, argument); \
    TENCH_MATH(float, name##f, float, argument); \
    long double name##l(long double, argument) __asm__("tench_float_" #name)
#define TENCH_MATH_TO(result, name, instruction) \
    result name(double) __asm__("tench_float_" #instruction); \
    result name##f(float) __asm__("tench_float_" #instruction "f"); \
    result name##l(long double) __asm__("tench_float_" #instruction)

TENCH_MATH_X(acos);
TENCH_MATH_X(acosh);
TENCH_MATH_X(asin);
TENCH_MATH_X(asinh);
TENCH_MATH_X(atan);
TENCH_MATH_X(atanh);
TENCH_MATH_X(cbrt);
TENCH_MATH_X(ceil);
TENCH_MATH_X(cos);
TENCH_MATH_X(cosh);
TENCH_MATH_X(erf);
TENCH_MATH_X(erfc);
TENCH_MATH_X(exp);
TENCH_MATH_X(exp2);
TENCH_MATH_X(expm1);
TENCH_MATH_X(fabs);
TENCH_MATH_X(floor);
TENCH_MATH_X(lgamma);
TENCH_MATH_X(log);
TENCH_MATH_X(log10);
TENCH_MATH_X(log1p);
TENCH_MATH_X(log2);
TENCH_MATH_X(logb);
TENCH_MATH_X(nearbyint);
TENCH_MATH_X(rint);
TENCH_MATH_X(round);
TENCH_MATH_X(sin);
TENCH_MATH_X(sinh);
TENCH_MATH_X(sqrt);
TENCH_MATH_X(tan);
TENCH_MATH_X(tanh);
TENCH_MATH_X(tgamma);
TENCH_MATH_X(trunc);
TENCH_MATH_XY(atan2);
TENCH_MATH_XY(copysign);
TENCH_MATH_XY(fdim);
TENCH_MATH_XY(fmax);
TENCH_MATH_XY(fmin);
TENCH_MATH_XY(fmod);
TENCH_MATH_XY(hypot);
TENCH_MATH_XY(nextafter);
TENCH_MATH_XY(pow);
TENCH_MATH_XY(remainder);
TENCH_MATH_XA(frexp, int *);
TENCH_MATH_XA(ldexp, int);
TENCH_MATH_TO(int, ilogb, ilogb);
TENCH_MATH_TO(long, lrint, lrint);
TENCH_MATH_TO(long long, llrint, lrint);
TENCH_MATH_TO(long, lround, lround);
TENCH_MATH_TO(long long, llround, lround);
TENCH_MATH_XA(scalbn, int);
TENCH_MATH_XA(scalbln, long);
TENCH_MATH(double, modf, double, double *);
TENCH_MATH(float, modff, float, float *);
long double modfl(long double, long double *) __asm__("tench_float_modf");
TENCH_MATH(double, remquo, double, double, int *);
TENCH_MATH(float, remquof, float, float, int *);
long double remquol(long double, long double, int *) __asm__("tench_float_remquo");
TENCH_MATH(double, fma, double, double, double);
TENCH_MATH(float, fmaf, float, float, float);
long double fmal(long double, long double, long double) __asm__("tench_float_fma");
double nexttoward(double, long double) __asm__("tench_float_nextafter");
long double nexttowardl(long double, long double) __asm__("tench_float_nextafter");

__attribute__((unused))
static inline float nexttowardf(float x, long double y)
{
    if (isunordered(x, y))
        return x + (float)y;
    return x == y ? (float)y : nextafterf(x, x < y ? HUGE_VALF : -HUGE_VALF);
}

__attribute__((unused))
static inline double nan(const char *kind)
{
    (void)kind; /* There is one that is no number. */
    return __builtin_nan("");
}

__attribute__((unused))
static inline float nanf(const char *kind)
{
    (void)kind;
    return __builtin_nanf("");
}

__attribute__((unused))
static inline long double nanl(const char *kind)
{
    (void)kind;
    return __builtin_nanl("");
}

#undef TENCH_MATH
#undef TENCH_MATH_X
#undef TENCH_MATH_XY
#undef TENCH_MATH_XA
#undef TENCH_MATH_TO

#endif
