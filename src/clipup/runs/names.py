"""The one name of each number of a run: on the screen, in the report, in figures and in docs/glossary.md."""

NAMES = {
    "generation": "generation",
    "population": "population",
    "interactions": "interactions of the generation",
    "total_interactions": "interactions",
    "fitness_mean": "mean fitness",
    "fitness_best": "best fitness of the generation",
    "best": "best fitness",
    "score": "score",
    "score_standard_error": "standard error",
    "speed": "speed",
    "max_speed": "max_speed",
    "clipped": "clipped",
    "stdev_norm": "stdev norm",
    "gradient_norm": "gradient norm",
    "gradient_agreement": "gradient agreement",
    "nonfinite": "non-finite",
    "tied": "tied",
    "population_bound": "population bound",
    "figures": "figures",
    "seconds": "training time",
    "steps_per_second": "steps/s",
}
"""By the key in ``records.jsonl`` and ``clock.jsonl``."""
TIME_LEFT = "time left"
