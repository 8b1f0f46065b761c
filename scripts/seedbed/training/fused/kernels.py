"""The operations of `operations`, each in one pass over the tokens of all seeds, for a GPU in bfloat16.

Triton compiles the kernels at their first use and keeps them in its cache. Tokens are bfloat16, weights
float32 with a bfloat16 copy for products, and gradients of weights float32.
"""

from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from seedbed.models.roberta import LAYER_NORM_EPSILON
from seedbed.training.fused.operations import ALL, Operations, Weights, in_stack

SHORT = torch.bfloat16
ROWS = 16  # tokens that one program normalises, one after another


class Kernels(Operations):
    """The operations in few kernels, for the activation GELU.

    Args:
        weights: the stacked weights, in float32.
        tables: gradients of embedding tables by the table's name, see `tables.Table`.
        draw: what dropout's random numbers depend on, besides the update.
    """

    def __init__(self, weights: Weights, tables: Mapping[str, torch.Tensor], draw: int):
        super().__init__(weights, "gelu", SHORT)
        self._tables = tables
        products = [name for name in weights if weights[name].dim() == 3 and name not in tables]
        self._masters = [weights[name].detach() for name in products]
        self._copies = [torch.empty_like(master, dtype=SHORT) for master in self._masters]
        self._short = dict(zip(products, self._copies, strict=True))
        self._places = {name: place for place, name in enumerate(weights)}  # of dropout
        self._draw = torch.tensor([draw], device=self._masters[0].device)
        self._first = draw
        self.refresh(0)

    def refresh(self, update: int) -> None:
        torch._foreach_copy_(self._copies, self._masters)
        self._draw.fill_(self._first + update)

    def embed(self, name: str, ids: torch.Tensor) -> torch.Tensor:
        table = self.weights[name]
        return _Rows.apply(table, in_stack(table, ids), self._tables[name])

    def project(self, name: str, x: torch.Tensor, outputs: slice = ALL) -> torch.Tensor:
        return self._product(name, x, outputs) + self._weight(f"{name}.bias")[:, None, outputs]

    def activate(self, name: str, x: torch.Tensor) -> torch.Tensor:
        return _Gelu.apply(self._product(name, x), self.weights[f"{name}.bias"])

    def add(
        self, residual: torch.Tensor, name: str, x: torch.Tensor, dropout: float, norm: str
    ) -> torch.Tensor:
        return _AddAndNorm.apply(
            self._product(name, x),
            *(self.weights[f"{name}.bias"], residual, dropout, self._draw, self._places[f"{name}.weight"]),
            *(self.weights[f"{norm}.weight"], self.weights[f"{norm}.bias"]),
        )

    def _product(self, name: str, x: torch.Tensor, outputs: slice = ALL) -> torch.Tensor:
        name = f"{name}.weight"
        return _Product.apply(x, self.weights[name][:, outputs], self._short[name][:, outputs])


class _Rows(torch.autograd.Function):
    """Rows of a table, whose gradients are left in a tensor of the table's shape; its other rows stay."""

    @staticmethod
    def forward(ctx: Any, table: torch.Tensor, places: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(places)
        ctx.gradient = gradient.flatten(0, 1)
        ctx.gradient.index_fill_(0, places.flatten(), 0.0)
        return table.flatten(0, 1)[places].to(SHORT)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, ...]:
        (places,) = ctx.saved_tensors
        ctx.gradient.index_add_(0, places.flatten(), gradient.flatten(0, 1).float())
        return None, None, None


class _Product(torch.autograd.Function):
    """x W^T of each seed; the gradient of W is in float32 at once."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, _: torch.Tensor, short: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, short)
        return torch.bmm(x, short.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, short = ctx.saved_tensors
        of_x = torch.bmm(gradient, short)
        of_weight = torch.bmm(gradient.transpose(1, 2), x, out_dtype=torch.float32)
        return of_x, of_weight, None


# --- linear layer's bias and GELU ---


@triton.jit
def _gelu_forward(x, bias, out, tokens, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < width
    h = tl.load(x + row * width + column, inside).to(tl.float32)
    h += tl.load(bias + row // tokens * width + column, inside)
    y = 0.5 * h * (1 + libdevice.erf(h * 0.7071067811865476))
    tl.store(out + row * width + column, y.to(out.dtype.element_ty), inside)


@triton.jit
def _gelu_backward(x, bias, gradient, out, partial, tokens, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    seed, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    column = tl.arange(0, BLOCK)
    inside = column < width
    b = tl.load(bias + seed * width + column, inside)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(ROWS):
        token = chunk * ROWS + k
        kept = inside & (token < tokens)
        place = (seed * tokens + token) * width + column
        h = tl.load(x + place, kept, 0.0).to(tl.float32) + b
        g = tl.load(gradient + place, kept, 0.0).to(tl.float32)
        slope = 0.5 * (1 + libdevice.erf(h * 0.7071067811865476)) + h * 0.3989422804014327 * tl.exp(
            -0.5 * h * h
        )
        g = g * slope
        total += g
        tl.store(out + place, g.to(out.dtype.element_ty), kept)
    tl.store(partial + (seed * tl.num_programs(1) + chunk) * width + column, total, inside)


class _Gelu(torch.autograd.Function):
    """GELU(x + bias), with the bias of each seed."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, bias)
        seeds, tokens, width = x.shape
        out = torch.empty_like(x)
        _gelu_forward[(seeds * tokens,)](x, bias, out, tokens, width, BLOCK=triton.next_power_of_2(width))
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x, bias = ctx.saved_tensors
        seeds, tokens, width = x.shape
        gradient = gradient.contiguous()
        out = torch.empty_like(x)
        chunks = triton.cdiv(tokens, ROWS)
        partial = torch.empty((seeds, chunks, width), device=x.device)
        _gelu_backward[(seeds, chunks)](
            *(x, bias, gradient, out, partial, tokens, width),
            ROWS=ROWS,
            BLOCK=triton.next_power_of_2(width),
        )
        return out, partial.sum(1)


# --- a linear layer's bias, dropout, the residual stream and its norm ---


@triton.jit
def _kept(draw, place, row, column, width, rate):
    """Whether dropout keeps each element of a row, by random numbers of the update, the place and the row."""
    seed = tl.load(draw) + place * 0x632BE5AB
    return tl.rand(seed, row * width + column) >= rate


@triton.jit(do_not_specialize=["place"])
def _add_forward(x, bias, residual, weight, shift, out, total, mean, scale, draw, place, rate, tokens, width,
                 epsilon, DROPS: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    row = tl.program_id(0)
    seed, begin = row // tokens, row.to(tl.int64) * width
    column = tl.arange(0, BLOCK)
    inside = column < width
    z = tl.load(x + begin + column, inside, 0.0).to(tl.float32)
    z += tl.load(bias + seed * width + column, inside, 0.0)
    if DROPS:
        z = tl.where(_kept(draw, place, row, column, width, rate), z / (1 - rate), 0.0)
    z += tl.load(residual + begin + column, inside, 0.0).to(tl.float32)
    z = z.to(total.dtype.element_ty)  # what the backward pass will read
    tl.store(total + begin + column, z, inside)
    z = z.to(tl.float32)
    m = tl.sum(z, 0) / width
    centred = tl.where(inside, z - m, 0.0)
    s = tl.rsqrt(tl.sum(centred * centred, 0) / width + epsilon)
    tl.store(mean + row, m)
    tl.store(scale + row, s)
    y = centred * s * tl.load(weight + seed * width + column, inside) + tl.load(
        shift + seed * width + column, inside
    )
    tl.store(out + begin + column, y.to(out.dtype.element_ty), inside)


@triton.jit(do_not_specialize=["place"])
def _add_backward(gradient, total, mean, scale, weight, of_x, of_residual, partial, draw, place, rate, tokens,
                  width, DROPS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    seed, chunk = tl.program_id(0), tl.program_id(1)
    column = tl.arange(0, BLOCK)
    inside = column < width
    w = tl.load(weight + seed * width + column, inside, 0.0)
    of_weight = tl.zeros((BLOCK,), tl.float32)
    of_shift = tl.zeros((BLOCK,), tl.float32)
    of_bias = tl.zeros((BLOCK,), tl.float32)
    for k in range(ROWS):
        token = chunk * ROWS + k
        row = seed * tokens + token
        kept = inside & (token < tokens)
        at = row.to(tl.int64) * width + column
        g = tl.load(gradient + at, kept, 0.0).to(tl.float32)
        s = tl.load(scale + row, token < tokens, 0.0)
        z = tl.load(total + at, kept, 0.0).to(tl.float32)
        normal = tl.where(kept, (z - tl.load(mean + row, token < tokens, 0.0)) * s, 0.0)
        of_weight += g * normal
        of_shift += g
        g = g * w
        g = s * (g - tl.sum(g, 0) / width - normal * tl.sum(g * normal, 0) / width)
        tl.store(of_residual + at, g.to(of_residual.dtype.element_ty), kept)
        if DROPS:
            g = tl.where(_kept(draw, place, row, column, width, rate), g / (1 - rate), 0.0)
            tl.store(of_x + at, g.to(of_x.dtype.element_ty), kept)
        of_bias += tl.where(kept, g, 0.0)
    begin = partial + (seed * tl.num_programs(1) + chunk).to(tl.int64) * 3 * width
    tl.store(begin + column, of_weight, inside)
    tl.store(begin + width + column, of_shift, inside)
    tl.store(begin + 2 * width + column, of_bias, inside)


class _AddAndNorm(torch.autograd.Function):
    """norm(residual + dropout(x + bias)), with the weights of each seed."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        bias: torch.Tensor,
        residual: torch.Tensor,
        rate: float,
        draw: torch.Tensor,
        place: int,
        weight: torch.Tensor,
        shift: torch.Tensor,
    ) -> torch.Tensor:
        seeds, tokens, width = x.shape
        residual = residual.contiguous()
        out, total = torch.empty_like(x), torch.empty_like(x)
        mean, scale = torch.empty((2, seeds * tokens), device=x.device)
        _add_forward[(seeds * tokens,)](
            *(x, bias, residual, weight, shift, out, total, mean, scale),
            *(draw, place, rate, tokens, width, LAYER_NORM_EPSILON),
            DROPS=rate > 0,
            BLOCK=triton.next_power_of_2(width),
        )
        ctx.save_for_backward(total, mean, scale, weight, draw)
        ctx.rate, ctx.place = rate, place
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        total, mean, scale, weight, draw = ctx.saved_tensors
        seeds, tokens, width = total.shape
        gradient = gradient.contiguous()
        of_residual = torch.empty_like(total)
        of_x = torch.empty_like(total) if ctx.rate > 0 else of_residual
        chunks = triton.cdiv(tokens, ROWS)
        partial = torch.empty((seeds, chunks, 3, width), device=total.device)
        _add_backward[(seeds, chunks)](
            *(gradient, total, mean, scale, weight, of_x, of_residual, partial),
            *(draw, ctx.place, ctx.rate, tokens, width),
            DROPS=ctx.rate > 0,
            ROWS=ROWS,
            BLOCK=triton.next_power_of_2(width),
        )
        of_weight, of_shift, of_bias = partial.sum(1).unbind(1)
        return of_x, of_bias, of_residual, None, None, None, of_weight, of_shift
