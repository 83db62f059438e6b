"""The methods of the literature, each by the function that names it."""

import filtax as fx
from catalogue.parts import LENGTHS, linear, models, relax, walk, walk_of
from catalogue.row import Row
from catalogue.streams import X, flat, label, y

ROWS = {
    "chaer_1997": Row(
        lambda rate: fx.methods.chaer_1997(linear(0.25), [walk_of(0.01), walk_of(1.0)], rate), 0.5, flat, X, y
    ),
    "ghahramani_hinton_2000": Row(
        lambda noise: fx.methods.ghahramani_hinton_2000(linear(noise), [[0.9, 0.1], [0.2, 0.8]], posterior="LG"),
        0.25,
        flat,
        X,
        y,
    ),
    "fearnhead_liu_2007": Row(
        lambda h: fx.methods.fearnhead_liu_2007(linear(0.25), h, [relax(0.9), relax(1.0)], keep=3), 0.1, flat, X, y
    ),
    "nguyen_2017": Row(lambda noise: fx.methods.nguyen_2017(linear(noise), memory=3, posterior="LG"), 0.25, flat, X, y),
    "kurle_2019": Row(
        lambda rate: fx.methods.kurle_2019(linear(0.25), rate, memory=3, posterior="LG"), 0.9, flat, X, y
    ),
    "nassar_2022": Row(lambda p: fx.methods.nassar_2022(linear(0.25), p, memory=3), 0.6, flat, X, y),
    "nassar_2022-binary": Row(
        lambda noise: fx.methods.nassar_2022(linear(noise), 0.6, memory=3, binary=True), 0.25, flat, X, y
    ),
    "kalman_1960": Row(lambda q: fx.methods.kalman_1960(linear(0.25), walk_of(q)), 0.1, flat, X, y),
    "magill_1965": Row(lambda q: fx.methods.magill_1965(linear(0.25), [walk_of(q), walk_of(1.0)]), 0.1, flat, X, y),
    "chang_athans_1978": Row(
        lambda q: fx.methods.chang_athans_1978(linear(0.25), [walk_of(q), walk_of(1.0)], [[0.9, 0.1], [0.2, 0.8]]),
        0.1,
        flat,
        X,
        y,
    ),
    "adams_mackay_2007": Row(lambda h: fx.methods.adams_mackay_2007(linear(0.25), h), 0.1, flat, X, y),
    "wilson_2010": Row(lambda a: fx.methods.wilson_2010(linear(0.25), a, 9.0, keep=3), 1.0, flat, X, y),
    "fearnhead_liu_2011": Row(  # under a constant hazard, paths that differ in when they changed would weigh the same
        lambda noise: fx.methods.fearnhead_liu_2011(linear(noise), LENGTHS, keep=3), 0.25, flat, X, y
    ),
    "mellor_shapiro_2013": Row(
        lambda h: fx.methods.mellor_shapiro_2013(models.bernoulli(), h), 0.1, {"mean": 0.5, "cov": 0.05}, None, label
    ),
    "knoblauch_damoulas_2018": Row(
        lambda h: fx.methods.knoblauch_damoulas_2018(linear(0.25), [walk(0.0), walk(0.1)], h, keep=3), 0.1, flat, X, y
    ),
    "kurle_2019_relaxing": Row(lambda r: fx.methods.kurle_2019_relaxing(linear(0.25), r), 0.9, flat, X, y),
    "li_2021": Row(lambda h: fx.methods.li_2021(linear(0.25), h, keep=3), 0.1, flat, X, y),
    "liu_2023": Row(lambda q: fx.methods.liu_2023(linear(0.25), [walk(q), walk(1.0)]), 0.1, flat, X, y),
    "chang_2023": Row(lambda q: fx.methods.chang_2023(linear(0.25), q, rank=2), 0.01, flat, X, y),
    "titsias_2023": Row(lambda noise: fx.methods.titsias_2023(linear(noise)), 0.25, flat, X, y),
    "galashov_2024": Row(lambda noise: fx.methods.galashov_2024(linear(noise)), 0.25, flat, X, y),
    "abeles_2024": Row(lambda q: fx.methods.abeles_2024(linear(0.25), [walk_of(q), walk_of(1.0)]), 0.1, flat, X, y),
    "duran_martin_2025": Row(lambda h: fx.methods.duran_martin_2025(linear(0.25), h), 0.1, flat, X, y),
}
