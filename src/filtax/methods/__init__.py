"""The catalogue: one short function for each published method, made of the same parts as everything else.

The five choices of a method are data: `filtax methods` prints them as a table. A default is the publication's where it
gives one, and a plain guess where it does not: hazards are of the latter kind, and `filtax methods NAME` says which.

Thesis: tab:related-bone-methods, all 21 rows, and Kurle's a second time as the text of the thesis has it.
"""

from filtax.methods.changes import (
    adams_mackay_2007,
    duran_martin_2025,
    fearnhead_liu_2007,
    fearnhead_liu_2011,
    knoblauch_damoulas_2018,
    mellor_shapiro_2013,
    wilson_2010,
)
from filtax.methods.filters import (
    abeles_2024,
    chaer_1997,
    chang_athans_1978,
    ghahramani_hinton_2000,
    kalman_1960,
    liu_2023,
    magill_1965,
)
from filtax.methods.learning import (
    chang_2023,
    galashov_2024,
    kurle_2019,
    kurle_2019_relaxing,
    li_2021,
    nassar_2022,
    nguyen_2017,
    titsias_2023,
)
from filtax.methods.references import REFERENCES, source
from filtax.methods.row import PUBLISHED, Published

__all__ = [
    "PUBLISHED",
    "REFERENCES",
    "Published",
    "abeles_2024",
    "adams_mackay_2007",
    "chaer_1997",
    "chang_2023",
    "chang_athans_1978",
    "duran_martin_2025",
    "fearnhead_liu_2007",
    "fearnhead_liu_2011",
    "galashov_2024",
    "ghahramani_hinton_2000",
    "kalman_1960",
    "knoblauch_damoulas_2018",
    "kurle_2019",
    "kurle_2019_relaxing",
    "li_2021",
    "liu_2023",
    "magill_1965",
    "mellor_shapiro_2013",
    "nassar_2022",
    "nguyen_2017",
    "source",
    "titsias_2023",
    "wilson_2010",
]

_BY_YEAR = sorted(PUBLISHED.items(), key=lambda named: next(part for part in named[0].split("_") if part.isdigit()))
PUBLISHED.clear()
PUBLISHED.update(_BY_YEAR)
