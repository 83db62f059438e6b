"""Where the published methods come from, and which of their defaults are the publication's."""

__all__ = ["REFERENCES", "source"]

REFERENCES: dict[str, str] = {
    "kalman_1960": "R. E. Kalman. A new approach to linear filtering and prediction problems. J. Basic Eng. 82, 1960.",
    "magill_1965": "D. T. Magill. Optimal adaptive estimation of sampled stochastic processes. IEEE TAC 10, 1965.",
    "chang_athans_1978": "C. B. Chang and M. Athans. State estimation for discrete systems with switching parameters. "
    "IEEE Trans. AES 14, 1978.",
    "chaer_1997": "W. S. Chaer, R. H. Bishop and J. Ghosh. A mixture-of-experts framework for adaptive Kalman "
    "filtering. IEEE Trans. SMC B 27, 1997.",
    "ghahramani_hinton_2000": "Z. Ghahramani and G. E. Hinton. Variational learning for switching state-space models. "
    "Neural Computation 12, 2000.",
    "adams_mackay_2007": "R. P. Adams and D. J. C. MacKay. Bayesian online changepoint detection. "
    "arXiv:0710.3742, 2007.",
    "fearnhead_liu_2007": "P. Fearnhead and Z. Liu. On-line inference for multiple changepoint problems. "
    "JRSS B 69, 2007.",
    "wilson_2010": "R. C. Wilson, M. R. Nassar and J. I. Gold. Bayesian online learning of the hazard rate in "
    "change-point problems. Neural Computation 22, 2010.",
    "fearnhead_liu_2011": "P. Fearnhead and Z. Liu. Efficient Bayesian analysis of multiple changepoint models with "
    "dependence across segments. Statistics and Computing 21, 2011.",
    "mellor_shapiro_2013": "J. Mellor and J. Shapiro. Thompson sampling in switching environments with Bayesian online "
    "change detection. AISTATS 2013.",
    "nguyen_2017": "C. V. Nguyen, Y. Li, T. D. Bui and R. E. Turner. Variational continual learning. "
    "arXiv:1710.10628, 2017.",
    "knoblauch_damoulas_2018": "J. Knoblauch and T. Damoulas. Spatio-temporal Bayesian on-line changepoint detection "
    "with model selection. ICML 2018.",
    "kurle_2019": "R. Kurle, B. Cseke, A. Klushyn, P. van der Smagt and S. Günnemann. Continual learning with Bayesian "
    "neural networks for non-stationary data. ICLR 2020.",
    "li_2021": "A. Li, A. Boyd, P. Smyth and S. Mandt. Detecting and adapting to irregular distribution shifts in "
    "Bayesian online learning. NeurIPS 2021.",
    "nassar_2022": "J. Nassar, J. Brennan, B. Evans and K. Lowrey. BAM: Bayes with adaptive memory. ICLR 2022.",
    "liu_2023": "B. Liu. Robust sequential online prediction with dynamic ensemble of multiple models. "
    "Neurocomputing 552, 2023.",
    "chang_2023": "P. G. Chang, G. Durán-Martín, A. Shestopaloff, M. Jones and K. Murphy. Low-rank extended Kalman "
    "filtering for online learning of neural networks from streaming data. CoLLAs 2023.",
    "titsias_2023": "M. K. Titsias, A. Galashov, A. Rannen-Triki, R. Pascanu, Y. W. Teh and J. Bornschein. Kalman "
    "filter for online classification of non-stationary data. arXiv:2306.08448, 2023.",
    "galashov_2024": "A. Galashov, M. K. Titsias, A. György, C. Lyle, R. Pascanu, Y. W. Teh and M. Sahani. "
    "Non-stationary learning of neural networks with automatic soft parameter reset. NeurIPS 2024.",
    "abeles_2024": "B. Abélès, J. de Vilmarest and O. Wintenberger. Adaptive time series forecasting with Markovian "
    "variance switching. arXiv:2402.14684, 2024.",
    "duran_martin_2025": "G. Durán-Martín. The thesis itself, RL[1]-OUPR*; sec:SPR.",
}
REFERENCES["kurle_2019_relaxing"] = REFERENCES["kurle_2019"]

_FROM = {
    ("duran_martin_2025", "threshold"): "the thesis: back to the prior when a change is the more probable",
    ("li_2021", "keep"): "the publication's experiments",
}


def source(name: str, parameter: str) -> str:
    """Say where a default of a published method comes from.

    >>> source("adams_mackay_2007", "hazard")
    'ours, a plain guess'
    >>> source("kalman_1960", "posterior")
    'ours; any other name of the grammar will do'
    """
    if parameter == "posterior":
        return "ours; any other name of the grammar will do"
    return _FROM.get((name, parameter), "ours, a plain guess")
