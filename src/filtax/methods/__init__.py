"""Methods: `fx.method` builds one from its name, and each published method is one function here.

Thesis: tab:related-bone-methods.
"""

from typing import TYPE_CHECKING

from filtax import _lazy

if TYPE_CHECKING:
    from filtax.methods._published import (
        PUBLISHED,
        REFERENCES,
        Published,
        abeles_2024,
        adams_mackay_2007,
        chaer_1997,
        chang_2023,
        chang_athans_1978,
        duran_martin_2025,
        fearnhead_liu_2007,
        fearnhead_liu_2011,
        galashov_2024,
        ghahramani_hinton_2000,
        kalman_1960,
        knoblauch_damoulas_2018,
        kurle_2019,
        kurle_2019_relaxing,
        li_2021,
        liu_2023,
        magill_1965,
        mellor_shapiro_2013,
        nassar_2022,
        nguyen_2017,
        source,
        titsias_2023,
        wilson_2010,
    )

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

__getattr__, __dir__ = _lazy(__name__, __all__, _published=" ".join(__all__))
