"""Modules of PyTorch as policies, and some that are refused."""

from __future__ import annotations

import torch
from torch import nn


class Perceptron(nn.Module):
    def __init__(self, observation_size, action_size, hidden=8, dropout=0.0):
        super().__init__()
        self.register_buffer("offset", torch.randn(observation_size))
        self.layers = nn.Sequential(
            nn.Linear(observation_size, hidden), nn.Tanh(), nn.Dropout(dropout), nn.Linear(hidden, action_size)
        )

    def forward(self, observation):
        return self.layers(observation + self.offset)


class Recurrent(nn.Module):
    """An LSTM, whose state is a tuple of two tensors."""

    def __init__(self, observation_size, action_size, hidden=4):
        super().__init__()
        self.cell = nn.LSTM(observation_size, hidden)
        self.head = nn.Linear(hidden, action_size)

    def forward(self, observation, state=None):
        values, state = self.cell(observation, state)
        return self.head(values), state


class Started(nn.Module):
    """Remembers one tensor; its first state is a parameter, not zero."""

    def __init__(self, observation_size, action_size):
        super().__init__()
        self.start = nn.Parameter(torch.ones(1, 3))
        self.cell = nn.GRUCell(observation_size, 3)
        self.head = nn.Linear(3, action_size)

    def forward(self, observation, state=None):
        state = self.cell(observation, self.start if state is None else state)
        return self.head(state), state


def perceptron(observation_size, action_size, hidden=8):
    return Perceptron(observation_size, action_size, hidden)


def empty():
    return nn.Tanh()


def narrow(observation_size):
    return nn.Linear(observation_size, 1)


def double(observation_size, action_size):
    return nn.Linear(observation_size, action_size, dtype=torch.float64)


def hidden_dropout(observation_size, action_size):
    """Its outputs are zero whatever the dropout leaves, until the search has moved."""
    head = nn.Linear(8, action_size)
    nn.init.zeros_(head.weight)
    return nn.Sequential(nn.Linear(observation_size, 8), nn.Dropout(0.5), head)


def batch_normalized(observation_size, action_size):
    return nn.Sequential(nn.Linear(observation_size, 8), nn.BatchNorm1d(8), nn.Linear(8, action_size))


def counting(observation_size, action_size):
    """Its statistics change with each step, in training mode."""
    return nn.Sequential(nn.Unflatten(1, (1, observation_size)), nn.InstanceNorm1d(1, track_running_stats=True),
                         nn.Flatten(), nn.Linear(observation_size, action_size))  # fmt: skip


def lazy(action_size):
    return nn.LazyLinear(action_size)


class Growing(nn.Module):
    """Remembers everything, so its state gets longer."""

    def __init__(self, observation_size, action_size):
        super().__init__()
        self.head = nn.Linear(observation_size, action_size)

    def forward(self, observation, state=None):
        state = observation if state is None else torch.cat([state, observation])
        return self.head(state.mean(0, keepdim=True)), state


class Widening(Growing):
    """Gives one output more from its second step on."""

    def forward(self, observation, state=None):
        outputs = self.head(observation)
        return (outputs if state is None else torch.cat([outputs, outputs], 1)), observation
