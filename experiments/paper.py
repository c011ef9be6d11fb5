"""The numbers of the paper, for comparison with ours."""

# Error (degrees or mm); seconds of clustering, the rest of training, prediction.
TABLE = {
    ("poser", "tgp", "NN"): (5.43, None, None, 188.99),
    ("poser", "tgp", "ODC ab p=0.9"): (5.40, 3.7, 25.1, 16.5),
    ("poser", "tgp", "ODC ab p=0"): (7.60, 3.9, 1.33, 14.8),
    ("poser", "tgp", "ODC rpc p=0.9"): (5.60, 0.23, 41.6, 15.8),
    ("poser", "tgp", "ODC rpc p=0"): (7.70, 0.15, 1.7, 13.89),
    ("poser", "tgp", "full"): (5.35, None, None, None),
    ("poser", "gp", "NN"): (6.77, None, None, 24.0),
    ("poser", "gp", "ODC ab p=0.9"): (6.27, 3.7, 11.1, 0.56),
    ("poser", "gp", "ODC ab p=0"): (7.54, 3.9, 1.38, 0.35),
    ("poser", "gp", "ODC rpc p=0.9"): (6.45, 0.23, 17.3, 0.52),
    ("poser", "gp", "ODC rpc p=0"): (7.46, 0.15, 1.5, 0.27),
    ("poser", "gp", "FIC"): (7.63, None, 20.63, 0.3106),
    ("poser", "gp", "full"): (6.10, None, None, None),
    ("humaneva", "tgp", "NN"): (38.1, None, None, 6364.0),
    ("humaneva", "tgp", "ODC ab p=0.9"): (38.9, 2001.0, 45.4, 298.0),
    ("humaneva", "tgp", "ODC ab p=0"): (41.87, 240.0, 4.9, 257.0),
    ("humaneva", "tgp", "ODC rpc p=0.9"): (39.9, 0.45, 49.1, 277.0),
    ("humaneva", "tgp", "ODC rpc p=0"): (42.32, 0.19, 5.2, 242.0),
    ("humaneva", "tgp", "full"): (40.3, None, None, None),
    ("humaneva", "gp", "NN"): (54.8, None, None, 618.0),
    ("humaneva", "gp", "ODC ab p=0.9"): (49.3, 2001.0, 42.85, 79.0),
    ("humaneva", "gp", "ODC ab p=0"): (49.6, 240.0, 6.4, 48.0),
    ("humaneva", "gp", "ODC rpc p=0.9"): (52.8, 0.49, 46.06, 64.0),
    ("humaneva", "gp", "ODC rpc p=0"): (54.6, 0.26, 4.6, 44.0),
    ("humaneva", "gp", "FIC"): (68.36, None, None, 102.0),
    ("humaneva", "gp", "full"): (59.62, None, None, None),
}
# Error and seconds of IWTGP in the NN scheme and in the cover.
WEIGHTED = {
    "poser": {"NN": (6.1, 360.0), "ODC": (5.32, 26.61)},
    "humaneva": {"NN": (39.1, 7938.15), "ODC": (39.3, 569.66)},
}
# J of 10,000 points in the plane, mean of 10 runs, by the number of clusters.
BALANCE = {
    5: {"ab": 1077.3, "imda": 1290.6},
    10: {"ab": 540.241, "imda": 657.446},
    50: {"ab": 105.505, "imda": 122.006},
}
# Errors in cm, and the ratio of prediction times.
HUMAN36M = {"NN": 13.5, "ODC": 13.8, "speed_up": 41.7}
