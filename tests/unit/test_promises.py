"""What the pages promise about failures, sentence by sentence, and the tests that hold each of them to it.

A new promise in one of these sections needs a line here. A sentence that changes, or a test that is renamed, does too.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Where every bullet and every paragraph must hold a promise of the table, but for those that only explain.
SECTIONS = {
    "training.md": ["Stopping, crashing, resuming", "Environments that import code"],
    "clusters.md": ["Processes", "Ray", "What travels"],
    "files.md": ["clock.jsonl", "Checkpoints", "What is opened, and how", "Safetensors as clipup writes it"],
    "security.md": ["What a file cannot do", "What a file can do", "What listens"],
}
EXPLAINED = {
    "training.md": ["Everything random in a run is a function", "On resuming, you can change where",
                    "`clipup.train(make_env, run=", "On the command line, `--env module:make_env`"],
    "clusters.md": [
        "Each worker has one BLAS thread", "Install `pip install", "Your own cluster is yours", "Out, once per",
        "Out, per range", "Back:", "If population × parameters is large",
    ],
    "files.md": [
        "A checkpoint is one safetensors file.", "Metadata:", "Tensors:", "The random state is the seed",
        "A file is an 8-byte little-endian length",
    ],
    "security.md": ["You can run `runs`", "`resume` and `evaluate` compute", "The options of an environment go"],
}  # fmt: skip

RESUME = "integration/test_resume.py"
SIGNALS = "integration/test_signals.py"
COMMANDS = "integration/test_commands.py"
CHAOS = "integration/test_chaos_processes.py"
HOSTILE = "integration/test_hostile_runs.py"
WORD = "integration/test_users_word.py"
GUARDED = "integration/test_runs_guarded.py"
FILES = "unit/test_files.py"
RAY = "integration/test_private_ray.py"
MIXED = "integration/test_mixed_processors.py"
KILLED = "test_a_run_killed_at_random_instants_ends_with_the_bytes_of_one_never_stopped"
STORM = "test_a_storm_of_signals_ends_with_the_code_of_one_of_them_and_leaves_a_sound_run"
PRIVATE = "test_a_private_ray_listens_to_this_machine_alone_refuses_strangers_and_does_not_outlive_its_trainer"
ATTACK = "test_no_hostile_run_is_followed_waited_for_or_shown_raw"
UNREGULAR = "test_what_is_no_regular_file_is_neither_read_nor_written_nor_waited_for"

# Page, the words of the promise, the file of the test, its name.
PROMISES = [
    # -- training.md
    ("training.md", "drops the generation in progress, writes a checkpoint and prints how to continue",
     RESUME, "test_a_signal_ends_a_run_within_seconds_and_it_resumes_to_the_same_bytes"),
    ("training.md", "The exit code is 130, 143 or 129",
     SIGNALS, "test_a_signal_at_any_moment_of_the_start_ends_with_its_code_and_no_traceback"),
    ("training.md", "With `nohup` a closed terminal changes nothing",
     SIGNALS, "test_with_nohup_a_closed_terminal_changes_nothing"),
    ("training.md", "A second Ctrl-C stops at once; only the current generation is lost",
     RESUME, "test_a_second_interrupt_stops_at_once_and_loses_nothing_but_a_generation"),
    ("training.md", "`clipup resume RUN` continues from the newest good checkpoint", RESUME, KILLED),
    ("training.md", "It names a damaged checkpoint and takes the one before it",
     RESUME, "test_a_damaged_checkpoint_is_named_and_the_one_before_it_leads_to_the_same_bytes"),
    ("training.md", "A test kills a run dozens of times, also in the middle of writes, and compares", RESUME, KILLED),
    ("training.md", "**A full disk** ends the run with one line",
     COMMANDS, "test_a_file_system_without_space_is_reported_and_loses_nothing"),
    ("training.md", "Free some space and resume", COMMANDS, "test_a_full_disk_is_reported_and_loses_nothing"),
    ("training.md", "A disk that fails in any other way",
     "integration/test_faults.py", "test_a_disk_that_fails_once_loses_nothing"),
    ("training.md", "the second is refused, even if the file `lock` was removed",
     "unit/runs/test_lock.py", "test_removing_the_lock_file_lets_no_second_process_in"),
    ("training.md", "**Records that are removed** while a run goes on are written again",
     RESUME, "test_records_removed_while_a_run_goes_on_are_written_again"),
    ("training.md", "If they are cut or grow, the run ends at its next write",
     "unit/runs/test_line_file.py", "test_lines_that_change_in_size_during_a_run_are_noticed_at_the_next_write"),
    ("training.md", "records are first compared with the digest in the checkpoint",
     RESUME, "test_records_that_were_changed_are_noticed_first_and_an_older_checkpoint_leads_to_the_same_bytes"),
    ("training.md", "**Signals in a storm**, during the start or at the end", SIGNALS, STORM),
    ("training.md", "**Signals in a storm**, during the start or at the end", SIGNALS,
     "test_storms_of_signals_over_every_executor_end_with_a_code_and_one_line_and_leave_nothing"),
    ("training.md", "a run of 50 generations that is resumed to 100 equals a run of 100",
     RESUME, "test_more_generations_give_the_same_bytes_as_asking_for_them_at_once"),
    ("training.md", "a run does not make clipup read a file outside of it unless you name that file too",
     WORD, "test_a_run_that_was_killed_before_its_first_checkpoint_starts_from_its_policy_on_a_persons_word"),
    ("training.md", "clipup starts at most as many as there are processors here",
     WORD, "test_workers_from_a_file_are_at_most_the_processors_here"),
    ("training.md", "| 1 | the run failed: the search diverged, or every candidate's environment failed",
     COMMANDS, "test_a_run_that_fails_ends_with_one_line_and_exit_code_1"),
    ("training.md", "| 2 | an argument was wrong, or a file could not be read or written",
     "unit/cli/test_main.py", "test_whatever_is_wrong_is_one_line_and_exit_code_2"),
    ("training.md", "clipup refuses until you name the module too: `--import module`",
     WORD, "test_a_module_that_only_a_file_names_is_not_imported"),
    ("training.md", "A file never makes clipup connect",
     WORD, "test_a_service_that_only_a_file_names_is_not_connected_to"),
    ("training.md", "continues all runs that are not finished",
     "integration/test_seeds.py", "test_killed_and_resumed_the_runs_have_the_same_bytes"),
    # -- clusters.md
    ("clusters.md", "a lost worker costs only time",
     CHAOS, "test_a_run_whose_workers_are_killed_twenty_times_has_the_bytes_of_a_quiet_one"),
    ("clusters.md", "A run may move between them",
     "integration/test_executors_same_bits.py", "test_a_run_that_moves_from_place_to_place_has_the_same_bytes"),
    ("clusters.md", "If it does not, clipup says so", CHAOS, "test_a_script_without_a_guard_is_told_so_in_one_line"),
    ("clusters.md", "and goes on in one process unless you gave `workers`",
     CHAOS, "test_where_workers_cannot_be_started_one_process_does"),
    ("clusters.md", "not a lambda", CHAOS, "test_an_environment_that_cannot_be_sent_is_refused_or_stays_here"),
    ("clusters.md", "The ranges get smaller towards the end of a batch",
     "unit/executors/test_scheduler.py", "test_no_worker_gets_more_than_an_even_share_before_it_needs_it"),
    ("clusters.md", "If it is not needed, its results are dropped",
     "unit/executors/test_scheduler.py", "test_speculation_that_is_not_asked_for_is_dropped"),
    ("clusters.md", "clipup warns, starts another one, and runs its range again, in two halves",
     CHAOS, "test_a_run_whose_workers_are_killed_twenty_times_has_the_bytes_of_a_quiet_one"),
    ("clusters.md", "After three workers the run ends with an error that names the candidate",
     CHAOS, "test_a_candidate_that_ends_every_worker_is_named"),
    ("clusters.md", "The checkpoint holds the state up to the last whole generation",
     CHAOS, "test_a_run_whose_candidate_ends_every_worker_ends_with_a_checkpoint"),
    ("clusters.md", "A worker that takes longer is ended, and the range is tried again",
     CHAOS, "test_what_went_wrong_once_or_twice_is_tried_again"),
    ("clusters.md", "After three tries on a single candidate the run ends with an error",
     "unit/executors/test_scheduler.py", "test_a_candidate_that_always_hangs_ends_the_run"),
    ("clusters.md", "A timeout never becomes a bad fitness",
     CHAOS, "test_a_candidate_that_ends_every_worker_is_named"),
    ("clusters.md", "No worker outlives the trainer, even if the trainer is killed with `kill -9`",
     CHAOS, "test_no_worker_outlives_the_trainer"),
    ("clusters.md", "its candidate gets no fitness and ranks last",
     "unit/training/test_trainer.py", "test_some_failing_candidates_are_ranked_last_and_all_of_them_end_the_run"),
    ("clusters.md", "It listens on 127.0.0.1 alone and has a random token", RAY, PRIVATE),
    ("clusters.md", "If the trainer is killed, a watcher ends it within seconds", RAY, PRIVATE),
    ("clusters.md", "older versions are refused", RAY, "test_a_ray_that_cannot_be_made_safe_is_refused_in_one_line"),
    ("clusters.md", "From outside, use Ray Client",
     "integration/test_hosts.py", "test_a_cluster_of_two_hosts_gives_the_bits_of_one_process"),
    ("clusters.md", "clipup joins a cluster only if you name it yourself",
     GUARDED, "test_a_file_never_causes_a_connection"),
    ("clusters.md", "Newer versions of Ray (2.59 on) ask for a token", RAY, PRIVATE),
    ("clusters.md", "A lost actor counts as a lost worker (see above), with or without its machine",
     "integration/test_chaos_ray.py", "test_a_run_on_a_cluster_under_siege_has_the_bytes_of_a_quiet_one"),
    ("clusters.md", "a host that is disconnected during a run",
     "integration/test_hosts.py", "test_a_host_that_is_unplugged_during_a_run_costs_time_alone"),
    ("clusters.md", "clipup stops and says so in one line",
     MIXED, "test_workers_whose_simulators_round_differently_are_refused_or_accepted_and_recorded"),
    ("clusters.md", "of what the policy computes from fixed numbers",
     MIXED, "test_workers_where_a_policy_of_ones_own_rounds_differently_are_refused"),
    ("clusters.md", "What clipup computes is the same on every machine of one architecture",
     MIXED, "test_half_of_the_workers_on_another_processor_give_the_same_bits"),
    # -- files.md
    ("files.md", "A run that resumes from a checkpoint first cuts off the lines that are newer", RESUME, KILLED),
    ("files.md", "a clock whose digests are wrong is named and cut at the first wrong line",
     RESUME, "test_a_clock_that_was_changed_is_named_and_stops_nothing"),
    ("files.md", "it is renamed; its directory is synced", RESUME, KILLED),
    ("files.md", "if `config.toml` was changed since in one of those settings",
     GUARDED, "test_an_edited_configuration_is_not_gone_on_with"),
    ("files.md", "A checkpoint also holds the settings that decide the results",
     "integration/test_forged_checkpoints.py", "test_a_forged_setting_is_refused"),
    ("files.md", "if this machine computes other digests, unless `--mixed-arithmetic` accepts it",
     MIXED, "test_a_run_that_goes_on_where_the_simulator_rounds_differently_is_refused_or_accepted_and_recorded"),
    ("files.md", "if the engine is no longer installed and another would have to take its place",
     "unit/training/test_trainer.py", "test_a_run_does_not_go_on_in_another_simulator"),
    ("files.md", "if the run has a policy but lost its checkpoints",
     GUARDED, "test_a_run_that_lost_its_checkpoints_is_not_begun_again"),
    ("files.md", "if it holds a search with another seed or generation",
     "integration/test_forged_checkpoints.py", "test_a_forged_seed_is_refused"),
    ("files.md", "It takes the newest checkpoint that is undamaged and whose records are whole",
     RESUME, "test_records_that_lost_lines_make_an_older_checkpoint_be_used"),
    ("files.md", "If none is left, clipup stops and changes nothing",
     RESUME, "test_when_no_checkpoint_is_usable_nothing_is_touched"),
    ("files.md", "If a checkpoint has a newer format version, clipup stops and changes nothing",
     RESUME, "test_a_checkpoint_of_a_newer_format_is_refused_and_nothing_is_touched"),
    ("files.md", "Checkpoints of version 0.1 have no digest and still resume",
     RESUME, "test_a_checkpoint_of_an_older_version_without_a_digest_still_resumes_to_the_same_records"),
    ("files.md", "Pipes, sockets and devices are not opened", FILES, UNREGULAR),
    ("files.md", "nor is a run that stands behind a link inside the directory of several seeds",
     HOSTILE, "test_a_run_inside_a_directory_is_not_gone_on_with_behind_a_link"),
    ("files.md", "A file with a second name (a hard link) is not appended to",
     FILES, "test_a_file_with_a_second_name_is_not_appended_to"),
    ("files.md", "through a temporary name with random digits", FILES, "test_temporary_names_cannot_be_prepared"),
    ("files.md", "is replaced whole if it is a regular file",
     FILES, "test_an_output_replaces_a_regular_file_and_keeps_its_permissions"),
    ("files.md", "A device or a pipe is written to",
     FILES, "test_an_output_goes_into_a_pipe_that_is_read_and_does_not_wait_for_one_that_is_not"),
    ("files.md", "A link is refused, except for those of the system itself",
     FILES, "test_an_output_never_replaces_a_device_or_a_link"),
    ("files.md", "A file of more than 512 MB is not read",
     "unit/runs/test_records.py", "test_no_more_is_read_than_a_file_of_records_can_be"),
    ("files.md", "one changed byte anywhere is noticed",
     "unit/export/test_safetensors.py", "test_a_change_of_any_single_byte_is_noticed"),
    # -- security.md
    ("security.md", "**It runs no code.**", "unit/export/test_policy_files.py",
     "test_two_hundred_random_corruptions_give_a_clear_error_and_import_nothing"),
    ("security.md", "**It makes clipup read no other file.**",
     WORD, "test_a_policy_that_only_a_run_names_is_not_read"),
    ("security.md", "**It connects to nothing.**", GUARDED, "test_a_file_never_causes_a_connection"),
    ("security.md", "**It reaches nothing outside its directory.**", HOSTILE, ATTACK),
    ("security.md", "**It does not make clipup wait or fill the memory.**", HOSTILE, ATTACK),
    ("security.md", "Long records are read in a stream",
     "unit/runs/test_records.py", "test_a_long_file_is_thinned_while_it_is_read"),
    ("security.md", "**It does not start many processes.**",
     WORD, "test_workers_from_a_file_are_at_most_the_processors_here"),
    ("security.md", "**It cannot send codes to your terminal.**",
     "unit/test_decoding.py", "test_whatever_is_shown_drives_no_terminal"),
    ("security.md", "**It does not hide other runs.**", HOSTILE, "test_one_bad_run_never_hides_the_others"),
    ("security.md", "makes hostile run directories and checks this",
     HOSTILE, "test_nothing_hostile_among_a_thousand_is_followed_waited_for_or_shown_raw"),
    ("security.md", "clipup notices if the parts of a run do not fit together, for example by their seed or generation",
     "integration/test_forged_checkpoints.py", "test_a_forged_generation_is_refused"),
    ("security.md", "answers only requests that name this machine and come from its own page",
     "integration/report/test_watch.py", "test_a_request_from_another_site_is_refused"),
    ("security.md", "starts a Ray that listens on 127.0.0.1, with a random token", RAY, PRIVATE),
    ("security.md", "Worker processes talk over pipes, and end with the trainer",
     CHAOS, "test_no_worker_outlives_the_trainer"),
]  # fmt: skip


def plain(text: str) -> str:
    return " ".join(text.split())


def blocks(page: str, heading: str) -> list[str]:
    """The paragraphs and bullets of a section, up to the next heading; tables line by line, without code."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    found = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found is not None, f"{page} has no section {heading!r}"
    body = re.sub(r"```.*?```", "", found[2], flags=re.DOTALL)
    parts = re.split(r"\n\s*\n|\n(?=- )|\n(?=[0-9]+\. )|\n(?=\| )", body)
    return [plain(part) for part in parts if part.strip() and not part.startswith("|")]


@pytest.mark.parametrize(("page", "words", "file", "name"), PROMISES, ids=lambda value: str(value)[:40])
def test_the_promise_stands_on_its_page_and_has_its_test(page: str, words: str, file: str, name: str) -> None:
    assert words in plain((ROOT / "docs" / page).read_text("utf-8")), f"docs/{page} no longer says: {words}"
    assert f"def {name}(" in (ROOT / "tests" / file).read_text("utf-8"), f"tests/{file} has no {name}"


@pytest.mark.parametrize(("page", "heading"), [(page, heading) for page in SECTIONS for heading in SECTIONS[page]])
def test_every_sentence_about_failures_is_held_by_a_test(page: str, heading: str) -> None:
    promised = [words for where, words, _, _ in PROMISES if where == page]
    for block in blocks(page, heading):
        said = re.sub(r"^(- |[0-9]+\. )", "", block).replace("**", "")
        if said.startswith(tuple(EXPLAINED[page])):
            continue
        assert any(words in block for words in promised), f"no test is named for this in docs/{page}: {block}"
