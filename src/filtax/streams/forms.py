"""What the tables and arrays of the public data sets hold: enough to make a file anew from its origin.

Made from the files themselves.
"""

from typing import NamedTuple

__all__ = ["FORMS", "Form"]


class Form(NamedTuple):
    """What a file holds.

    Attributes:
        rows: How many, without the names of the columns.
        names: Of the columns in their order, or of the arrays, with blanks between.
        first: The first row as it stands there; of arrays their dtypes and shapes.
        digest: sha256 of the numbers, see `filtax.streams.content`.

    >>> FORMS["uci/yacht.csv.gz"].rows, FORMS["uci/yacht.csv.gz"].columns[-1]
    (308, 'residuary_resistance')
    """

    rows: int
    names: str
    first: str
    digest: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.names.split())


FORMS = {
    "bandits/adult.csv.gz": Form(
        48842,
        (
            "age workclass fnlwgt education education_num marital_status occupation relationship race sex"
            " capital_gain capital_loss hours_per_week native_country income split"
        ),
        (
            "39,State-gov,77516,Bachelors,13,Never-married,Adm-clerical,Not-in-family,White,Male,2174,0,40"
            ",United-States,<=50K,train"
        ),
        "99edafd55a046eb23c13aac05d4761532b691f0cccfb8ae27a5e256aad3ec50d",
    ),
    "bandits/jester5k.npz": Form(
        5000,
        "ratings",
        "ratings float32 (5000, 100)",
        "a43b96820b31650d266253c89cd94e8b8e28ca063c90ef86e22a1f058aa39cdd",
    ),
    "bandits/mushroom.csv.gz": Form(
        8124,
        (
            "class cap_shape cap_surface cap_color bruises odor gill_attachment gill_spacing gill_size"
            " gill_color stalk_shape stalk_root stalk_surface_above_ring stalk_surface_below_ring"
            " stalk_color_above_ring stalk_color_below_ring veil_type veil_color ring_number ring_type"
            " spore_print_color population habitat"
        ),
        "p,x,s,n,t,p,f,c,n,k,e,e,s,s,w,w,p,w,o,p,k,s,u",
        "cc9995f49e7a8486d104940c2983bf19b8628edcf90da31ecee6e341759738d0",
    ),
    "bandits/showdown_covertype.npz": Form(
        5000,
        "contexts rewards opt_reward opt_action",
        ("contexts float64 (5000, 54); rewards float64 (5000, 7); opt_reward float64 (5000,); opt_action int8 (5000,)"),
        "c2716f93ff695b5f060593a1147ce61a9992fdde3266651ecf61cefdd61a6de0",
    ),
    "bandits/showdown_stock.npz": Form(
        3713,
        "contexts rewards opt_reward opt_action",
        (
            "contexts float64 (3713, 21); rewards float64 (3713, 8); opt_reward float64 (3713"
            ",); opt_action int64 (3713,)"
        ),
        "6e5fb3ad8d0a69b5ea31ec30e19f6958417632409f9a517e7b8ee8f477e54a00",
    ),
    "bandits/statlog_shuttle.csv.gz": Form(
        58000,
        "x1 x2 x3 x4 x5 x6 x7 x8 x9 label split",
        "50,21,77,0,28,0,27,48,22,2,train",
        "85eb9502fed09ac4f56517cb77a54f3a9c7ae109c09adad1d0e891616aa2c497",
    ),
    "electricity_postcovid/actuals_2017_2020.csv.gz": Form(
        31912,
        "time load_kw pressure cloud_cover_pct humidity_pct temperature_c wind_direction_deg wind_speed_kmh",
        (
            "2017-03-18 00:00:00,1031471.62805707,1012.48,2.125,79.33333333333333,16.76438621745121,285.25"
            ",6.253750000000001"
        ),
        "ca2fcd3cb072096d304ea16802e539bc61ecdb3a7fb7e720c6cc1f8b91331a15",
    ),
    "electricity_postcovid/weather_forecasts_2017_2020.csv.gz": Form(
        32160,
        "time temperature_c pressure cloud_cover_pct wind_direction_deg wind_speed_kmh",
        "2017-03-18 00:00:00,14,1011,3,307,2",
        "d2e5251fe1e7c771f4054e67002d328d50f1e7ee282c9dc0db816970469c83fc",
    ),
    "finance/djia_close_1885_2023.csv.gz": Form(
        37931,
        "date close",
        "1885-02-16,30.9226",
        "364b31770ed851828f493dff9c408af4dfb638723e152612bb3d842cd804a9d2",
    ),
    "finance/djia_daily_ohlcv_1992_2026.csv.gz": Form(
        8604,
        "date open high low close volume",
        "1992-01-02,3152.10009765625,3172.6298828125,3139.31005859375,3172.39990234375,23550000",
        "d04e42f3d41ca7ba891d952c564247a1f6496b69509c84ad0a627ccf516ec81b",
    ),
    "finance/sp500_20_stocks_daily_1990_2022.csv.gz": Form(
        8313,
        "date AAPL AMD BAC BBY CVX GE HD JNJ JPM KO LLY MRK MSFT PEP PFE PG RRC UNH WMT XOM",
        (
            "1990-01-02,0.264,4.125,4.599,0.144,4.991,14.391,1.117,3.438,3.394,2.235,6.658,4.215,0.384,4.738"
            ",1.021,3.86,3.322,0.31,3.653,4.068"
        ),
        "753eb0b815458061e398264e52c3f629662d993ae74bb55d42d69bae36bb9af1",
    ),
    "finance/sp500_index_daily_1990_2022.csv.gz": Form(
        8313,
        "date close",
        "1990-01-02,359.69",
        "ad51469a6131d57a87846f64dd31005fb26a71ae2723c10b1c09169a5e4ad8cc",
    ),
    "streams/elec2.csv.gz": Form(
        45312,
        "date day period nswprice nswdemand vicprice vicdemand transfer up",
        "0.0,2,0.0,0.056443,0.439155,0.003467,0.422915,0.414912,1",
        "24f731aca77f456a050313bb6320cec79b15efd4b93ec64055b7573a948ec270",
    ),
    "streams/keystroke.csv.gz": Form(
        1600,
        "f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 label",
        "0.0978,0.0634,0.043,0.6265,0.5054,0.1502,0.0798,0.0507,0.1945,0.1461,2",
        "5b8e8b6caf47cc31cc3c31aa7f5963f5a1ca721f812b841357cbd5d1b7ca970f",
    ),
    "streams/noaa_weather.csv.gz": Form(
        18159,
        (
            "temperature_f dew_point_f sea_level_pressure_mb visibility_mi avg_wind_speed_kn max_wind_speed_kn"
            " max_temperature_f min_temperature_f rain"
        ),
        "19.8,14.0,1019.6,8.4,9.9,15.9,28.9,14.0,0",
        "10f5ee34958bd44749b2294b661ae172e3af23365fa5a2684402ea278ac61afa",
    ),
    "streams/nycflights13.csv.gz": Form(
        336776,
        (
            "year month day dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay carrier flight"
            " origin dest air_time distance"
        ),
        "2013,1,1,517,515,2,830,819,11,UA,1545,EWR,IAH,227,1400",
        "261f3bd508f893333bc9f8ef9c1f3fc61126c78b53264c5a196458cbd9b18fda",
    ),
    "streams/outdoor_objects.csv.gz": Form(
        4000,
        "f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 f12 f13 f14 f15 f16 f17 f18 f19 f20 label",
        (
            "0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0009357,0.0131004,0.0003119,0.0,0.0302558,0.780724,0.157829"
            ",0.0006238,0.0028072,0.0028072,0.0053026,0.0003119,0.0028072,0.0021834,3"
        ),
        "5fb8ac57bb5650cb6af17e06e583408c6aab85ee3fc1b5744bf783b7129cd514",
    ),
    "streams/phishing.csv.gz": Form(
        1250,
        (
            "empty_server_form_handler popup_window https request_from_other_domain anchor_from_other_domain"
            " is_popular long_url age_of_domain ip_in_url is_phishing"
        ),
        "0.0,0.0,0.0,0.0,0.0,0.5,1.0,1,1,1",
        "f80fa06dd7f45977aff164ed75c80ef8fe20a1d55fad52c9c8df576a5f45b18f",
    ),
    "streams/trump_approval.csv.gz": Form(
        1001,
        "ordinal_date five_thirty_eight gallup ipsos morning_consult rasmussen you_gov",
        "736389,43.75505,43.843213,46.19925042857143,48.318749,44.104692,43.636914000000004",
        "a518dcdb21550d9deb06d7e8d674b2d14d6b3bc0ed6a1aff06459e78a000e011",
    ),
    "uci/boston.csv.gz": Form(
        506,
        "CRIM ZN INDUS CHAS NOX RM AGE DIS RAD TAX PTRATIO B LSTAT MEDV",
        "0.00632,18.0,2.31,0,0.538,6.575,65.2,4.09,1,296,15.3,396.9,4.98,24.0",
        "0ef2335be3648edc702b44a960237a4966722cf4f54ab55b7b9e732ce8cfaaf8",
    ),
    "uci/concrete.csv.gz": Form(
        1030,
        (
            "cement blast_furnace_slag fly_ash water superplasticizer coarse_aggregate fine_aggregate age_days"
            " strength_mpa"
        ),
        "540.0,0.0,0.0,162.0,2.5,1040.0,676.0,28,79.99",
        "0bf98cf447cdb775957f842fb9714deefe83cb73756626efde994695b8bf0c42",
    ),
    "uci/energy.csv.gz": Form(
        768,
        (
            "relative_compactness surface_area wall_area roof_area overall_height orientation glazing_area"
            " glazing_area_distribution heating_load"
        ),
        "0.98,514.5,294.0,110.25,7.0,2,0.0,0,15.55",
        "e17737d1ef466f306a2b12a0bd98481ce1a52e6a7af1bf016c6677a5cd3d466f",
    ),
    "uci/kin8nm.csv.gz": Form(
        8192,
        "theta1 theta2 theta3 theta4 theta5 theta6 theta7 theta8 y",
        ("-0.015119208,0.36074091,0.46939777,1.3096745,0.98802387,-0.025492554,0.66407094,0.062762996,0.53652416"),
        "b9c8cf89f48b41a72d529b85a083538460ad45feb18c739dde57a54199de7ca9",
    ),
    "uci/naval.csv.gz": Form(
        11934,
        "lp v GTT GTn GGn Ts Tp T48 T1 T2 P48 P1 P2 Pexh TIC mf kMc kMt",
        (
            "1.138,3,289.964,1349.489,6677.38,7.584,7.584,464.006,288,550.563,1.096,0.998,5.947,1.019,7.137"
            ",0.082,0.95,0.975"
        ),
        "6a151fb209b396a9086a9d5b77dd1cde364cebab1d235171e1f7222f20c2cd2e",
    ),
    "uci/power.csv.gz": Form(
        9568,
        "AT V AP RH PE",
        "8.34,40.77,1010.84,90.01,480.48",
        "8ee87b0e13f8a006be777940826c43fcefe70f942228676cef4d98cf63f7b1db",
    ),
    "uci/protein.csv.gz": Form(
        45730,
        "F1 F2 F3 F4 F5 F6 F7 F8 F9 RMSD",
        "13558.3,4305.35,0.31754,162.173,1872790.507,215.359,4287.87,102,27.0302,17.284",
        "ece54679565567c23546a0971eeeeeb9d3b7868ce22f9614f03d9b2e9191c3c3",
    ),
    "uci/wine_red.csv.gz": Form(
        1599,
        (
            "fixed_acidity volatile_acidity citric_acid residual_sugar chlorides free_sulfur_dioxide"
            " total_sulfur_dioxide density pH sulphates alcohol quality"
        ),
        "7.4,0.7,0.0,1.9,0.076,11.0,34.0,0.9978,3.51,0.56,9.4,5",
        "5019ed2caa202fbfa673483444cc0caf01af6f6bc8c327ce317c382a74183b32",
    ),
    "uci/yacht.csv.gz": Form(
        308,
        (
            "longitudinal_position prismatic_coefficient length_displacement_ratio beam_draught_ratio"
            " length_beam_ratio froude_number residuary_resistance"
        ),
        "-2.3,0.568,4.78,3.99,3.17,0.125,0.11",
        "b71de45ca1a57a3c09be31d4c16592d23f97b5bbc9b43d962a5aca7a2f9a8e03",
    ),
    "well_log.csv.gz": Form(
        4050,
        "nmr",
        "1.3353060e+05",
        "ab72ed8be57ce98def84864d095641dbc243b71beef5c2771815d0b8357c3ac4",
    ),
}
