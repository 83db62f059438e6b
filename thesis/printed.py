"""What the thesis prints of a claim, and what was tested, where the two are not the same.

They differ where the text contradicts itself or its figures, where a printed formula or constant cannot be right (the
numbers E1 to E38 are those of our list of errata), and where its words need a number to be true or false. The words are
the thesis's, with the names of methods written out; "..." leaves some out. A claim that is not here was tested as it is
printed.
"""

from typing import NamedTuple

__all__ = ["PRINTED", "Printed"]


class Printed(NamedTuple):
    """The words of the thesis, and the form that was decided.

    >>> PRINTED[7].words
    'p_epsilon = 0.001'
    """

    words: str
    tested: str


PRINTED = {
    1: Printed(
        "the parameters of the recursive-Bayes estimate ... tend to, and eventually match, the Ridge estimate",
        "They are equal after every datum, to 1e-10, and not only in the end; and so are the held-out errors.",
    ),
    2: Printed(
        "the R-VGA update ... matches that of ...",
        "The iteration that starts anew from the belief before the datum, for 1 to 5 rounds, to 1e-8. The printed one "
        "puts what it has just found on its right side, and counts a datum once for each round (E6).",
    ),
    4: Printed(
        "accuracy of the R-VGA rapidly increases, and then plateaus for 100 steps before its predictive power starts "
        "to increase",
        "Of one run. Tested is in how many of at least 20 seeds 100 steps with a slope below 1e-4 lie between two "
        "stretches with a slope above 5e-4.",
    ),
    5: Printed(
        "stabilises at a median accuracy of approximately 100%",
        "At least 0.97 in the end, or a batch network's accuracy less 0.01, for four noises of the moons; theirs is "
        "not stated.",
    ),
    6: Printed(
        "stabilises its accuracy around 100% for 200 steps before its predictive performance begins to decline and its "
        "variability increases. This behaviour is attributed to numerical instability.",
        "A fall of 0.05 from the peak, a spread 1.5 times that with the random walk, and a belief that is not finite "
        "or not positive. The text mixes the mean with the natural parameter (E8): the form used does not, the mixed "
        "one is told beside it.",
    ),
    7: Printed(
        "p_epsilon = 0.001",
        "A change with 0.01 a step (E9): with the printed number most streams of 300 steps have none. Both are run.",
    ),
    8: Printed(
        "the EnKF matches the KF whenever S tends to infinity",
        "The distance falls as the root of S, a slope of -0.5 give or take 0.1. The printed algorithm loops over time "
        "where it should loop over the members, and divides by S (E7).",
    ),
    9: Printed(
        "This combination is used in ... (of C-OU, naming Kurle et al. 2019)",
        "The table, which gives them CPV-Sub; the text and the table name two methods for one paper.",
    ),
    10: Printed(
        "it can be shown that CPT is equivalent to RL",
        "The equations, with a reset that learns from its first datum, against all histories of up to 12 data. The "
        "printed algorithm sums joints that have already seen the datum (E12).",
    ),
    12: Printed(
        "the 12-hour rolling mean absolute error (MAE) (text); the twelve-hour rolling relative absolute error "
        "(caption)",
        "The mean absolute error of 12 hours, averaged from 7 to 10 March: each of the two below each of the others.",
    ),
    13: Printed(
        "resets approximately twice every day until the time of the changepoint. After that ... does not reset",
        "From 1.5 to 2.5 resets a day on 1 to 6 March, and none on 7 to 10 March.",
    ),
    14: Printed(
        "Our new RL[1]-OUPR method has the lowest MAE.",
        "Below each of the three others, in pairs of 5-day means; with the six weather columns that there are (the "
        "text says seven, E18), and a second time beside the rules of thumb.",
    ),
    15: Printed(
        "works the best, and signifcantly outperforms RL[1]-PR",
        "Below each of the others, in pairs. The prose about OUPR exchanges its two cases (E14): the equations are "
        "used, which mix where the segment goes on, and reset where it does not.",
    ),
    18: Printed(
        "Accuracy of predictions (caption); misclassification error (text)",
        "The share of labels missed; above OUPR for K up to 3, and below it for some K up to 15, in pairs.",
    ),
    19: Printed(
        "The results we obtain are similar to those of ...",
        "The order found there. With steps of 0.03 (text) and 0.0548 (published runs), and with regret against the "
        "means and against the rewards that were drawn (published): one verdict on all four.",
    ),
    20: Printed(
        "we observe that RL[1]-OUPR has the lowest RMSE",
        "Below each rival in pairs; one that is alike within 10 % refutes it. Segments begin before the datum "
        "(x_r <= x_t, printed >=, E18), and the weights of MMPR sum to one (E13).",
    ),
    21: Printed(
        "The orange line shows the true number of changepoints (drawn at 5)",
        "Five segments have 4 boundaries: a median of at least 12 for RL[1]-PR, 2 to 6 for RL[1]-MMPR, fewer than 4 "
        "for RL[1]-OUPR.",
    ),
    22: Printed(
        "has a bounded PIF and is, therefore, outlier robust",
        "Definition and lemma take the divergence in two directions (E25), and the proofs do not prove it (E24 to "
        "E27): both directions are computed, up to errors of 1e30. W may be 0, as TMD needs (E21).",
    ),
    23: Printed(
        "our updates are always conservative, i.e., our posteriors will be wider in the presence of outliers",
        "After one update from the same prior, any W in [0, 1]; over a run only for the linear filter.",
    ),
    24: Printed(
        "Mean slowdown rate over KF. (caption); the median slowdown (text)",
        "The median. WoLF at most 1.3 times the KF; KF-B and KF-IW 0.7 to 1.4 times as often as they condition, both "
        "with 2 revisions (published: 1, 2 and 6).",
    ),
    25: Printed(
        "estimate the true state more closely than the competing methods ... look comparable to the KF",
        "RMSE of the first component over all trials, in pairs; comparable is within 10 %. The text defines J with a "
        "root, the figure has none (E29).",
    ),
    26: Printed(
        "filter the true state correctly ... are not robust to outliers",
        "Sums of squares: below 0.2 of the KF's is correct, above 0.5 of it is not robust (E29).",
    ),
    27: Printed(
        "performs comparably to our proposed method; however, it has much higher computational cost",
        "RMSE within 20 % of the better WoLF, at least 10 times its time.",
    ),
    28: Printed(
        "We observe that the WoLF-IMQ and the WoLF-TMD have both of these traits.",
        "Less error than OGD on each of the nine sets, in pairs, with outliers as in the text, U[-50, 50].",
    ),
    29: Printed(
        "the only two points in the third quadrant are those of the WoLF-IMQ and the WoLF-TMD",
        "There are two points for each set: all of WoLF's are there, and nobody else's.",
    ),
    30: Printed(
        "have much higher relative running time ... has much higher relative RMedSE",
        "At least twice WoLF's time; at least 1.3 times OGD's error, on all sets.",
    ),
    31: Printed(
        "We remove all values of G_T that have a value larger than 800. (caption); the RMedSE after multiple trials "
        "(text)",
        "RMedSE, of all trials: none is removed. Twice as long is 1.5 to 2.7 times.",
    ),
    32: Printed(
        "have similar performance ... are not able to correctly filter out outlier measurement at the tails ... "
        "over-penalises inliers",
        "Within 10 %; at least 1.3 times their error for |x| > 2; a clean datum is taken as good with less than 0.8.",
    ),
    34: Printed(
        "resets less often, and accurately adjusts to the regime changes when they do happen",
        "At most half of LG's resets, at most twice the true ones, F1 at least 0.6; LG at least three times too many.",
    ),
    35: Printed(
        "has a lower rolling RMSE error than LG+RL[inf]-PR up to first changepoint (around 100 steps)",
        "Of one stream. Tested over all whose first change comes after step 50, in pairs.",
    ),
    36: Printed(
        "q=0.01, r=1.0",
        "As variances, though the formulas square them: only so the gain settles at beta (E28). Wrong data move the "
        "EWMA by 0.04 or more and WoLF-EWMA by 0.002 or less; elsewhere the correlation is 0.95 or more.",
    ),
    38: Printed(
        "for d <= 10, the method performs no better than a random classifier, which corresponds to a misclassification "
        "rate of 0.9",
        "At least 0.85. The text starts at the last warm-up iterate, which knows more than chance; both offsets are "
        "run.",
    ),
    39: Printed(
        "d=1 provides a much better result than the subspace counterpart ... not as stark as in the subspace case",
        "At least 0.10 less; a range over d of less than half of the subspace's.",
    ),
    40: Printed(
        "the total rank does not have a strong influence on the performance ... the running time increases "
        "significantly",
        "A range over d of at most 0.03; at least 1.5 times the time.",
    ),
    41: Printed(
        "The lines correspond to the median performance across choices of d. (text); the best-performing configuration "
        "(caption)",
        "Within 0.02 of LoFi's median over d; half of the time is 0.35 to 0.65 of it.",
    ),
}
