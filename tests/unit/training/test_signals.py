import os
import signal
import threading

import pytest

from clipup.training.signals import Interrupted, Interruption


def test_a_signal_is_noted_where_it_may_not_interrupt_and_acted_on_where_it_may():
    before = signal.getsignal(signal.SIGINT)
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGTERM)
        assert interruption.signal == signal.SIGTERM
        with pytest.raises(Interrupted), interruption.allowed():
            pytest.fail("a signal that came before must be noticed on entering")
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_ends_an_evaluation_at_once():
    with Interruption() as interruption, pytest.raises(Interrupted), interruption.allowed():
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("unreachable")
    assert interruption.signal == signal.SIGINT


def test_a_second_ctrl_c_is_an_ordinary_keyboard_interrupt():
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert interruption.signal == signal.SIGINT


def test_no_environment_can_swallow_an_interruption():
    assert not issubclass(Interrupted, Exception)


def test_other_threads_are_left_alone():
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with Interruption() as interruption, interruption.allowed():
                pass
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failures
