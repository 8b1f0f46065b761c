"""The learning-rate schedule by hand, and against fairseq's and Transformers' own."""

import pytest

from seedbed.training.schedule import learning_rate, updates_per_epoch, warmup_updates

LAB = {
    "learning_rate": 1e-5,
    "warmup_ratio": 0.06,
    "schedule": "polynomial",
    "schedule_power": 1.0,
    "end_learning_rate": 0.0,
}


def test_the_labs_numbers():
    total = 5 * updates_per_epoch(1800, 8)
    assert total == 1125
    assert warmup_updates(total, 0.06) == 67
    assert learning_rate(0, total, LAB) == 0
    assert learning_rate(67, total, LAB) == pytest.approx(1e-5)
    assert learning_rate(67 + 529, total, LAB) == pytest.approx(0.5e-5)
    assert learning_rate(total, total, LAB) == 0


def test_the_last_batch_counts_though_it_is_smaller():
    assert updates_per_epoch(9, 8) == 2


def test_a_constant_schedule_stays_at_its_peak():
    constant = {**LAB, "schedule": "constant"}
    assert {learning_rate(done, 100, constant) for done in range(6, 101)} == {1e-5}


def test_without_warm_up_the_first_update_has_the_peak_rate():
    assert learning_rate(0, 10, {**LAB, "warmup_ratio": 0.0}) == 1e-5


def test_it_is_transformers_linear_schedule():
    import torch
    from transformers import get_linear_schedule_with_warmup

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1e-5)
    scheduler = get_linear_schedule_with_warmup(optimizer, 6, 100)
    for done in range(100):
        assert learning_rate(done, 100, LAB) == pytest.approx(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()


@pytest.mark.parametrize(("power", "end"), [(1.0, 0.0), (2.0, 1e-6)])
def test_it_is_fairseqs_polynomial_decay(power, end):
    from seedbed.models.fairseq_launcher import prepare_import

    prepare_import()
    from fairseq.optim.lr_scheduler.polynomial_decay_schedule import (
        PolynomialDecayLRSchedule,
        PolynomialDecayLRScheduleConfig,
    )

    class Optimizer:
        def set_lr(self, rate):
            self.rate = rate

        def get_lr(self):
            return self.rate

    config = PolynomialDecayLRScheduleConfig(
        warmup_updates=6, total_num_update=100, lr=[1e-5], power=power, end_learning_rate=end
    )
    scheduler = PolynomialDecayLRSchedule.__new__(PolynomialDecayLRSchedule)
    scheduler.cfg, scheduler.optimizer = config, Optimizer()
    scheduler.lr, scheduler.end_learning_rate = 1e-5, end
    scheduler.total_num_update, scheduler.power = 100, power
    settings = {**LAB, "schedule_power": power, "end_learning_rate": end}
    for done in range(101):
        assert learning_rate(done, 100, settings) == pytest.approx(scheduler.step_update(done))
