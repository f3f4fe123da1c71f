"""What the requests of a trial have used: the failed ones count like the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv_ci.contracts.exchange import ProviderError, Response
from agentv_ci.contracts.results import Expense, ResultRow, Usage, total_cost, total_usage


def of_attempt(failed: ProviderError | Response, attempt: int) -> tuple[Expense, ...]:
    """Return the expenses of the failed requests of an attempt, which is counted from 1."""
    return tuple(expense.model_copy(update={"attempt": attempt}) for expense in failed.expenses)


def with_failures(response: Response, earlier: Sequence[Expense], attempt: int) -> Response:
    """Return an answer with the expenses of what failed before it.

    These are earlier attempts, and failed requests of its own attempt, number `attempt`.
    """
    failed = (*earlier, *of_attempt(response, attempt))
    if not failed:
        return response
    # For evaluators a stored answer keeps its price; `paid_expenses` leaves it out of the bill.
    own = Expense(
        attempt=attempt,
        model=response.model,
        usage=response.usage or Usage(),
        cost_usd=response.cost_usd,
    )
    return with_totals(response, (*failed, own))


def paid_expenses(response: Response) -> tuple[Expense, ...]:
    """Return the expenses of an answer, without the price of one that is stored."""
    if not response.cached or not response.expenses:
        return response.expenses
    *failed, own = response.expenses
    return (*failed, own.model_copy(update={"cost_usd": 0.0}))


def with_totals(response: Response, expenses: tuple[Expense, ...]) -> Response:
    """Return an answer with the sums of its expenses."""
    return replace(
        response, expenses=expenses, usage=total_usage(expenses), cost_usd=total_cost(expenses)
    )


def with_expenses(
    fields: Mapping[str, Any], expenses: Sequence[Expense], judges: Sequence[Expense] = ()
) -> dict[str, Any]:
    """Return the fields of a row with the sums of all expenses.

    Without any, the fields as they are.

    `judges` is what the judges of the row have used, if their sums do not tell all.
    """
    if not expenses and not judges:
        return dict(fields)
    if all(expense.is_earlier for expense in expenses):
        # Nothing failed in this run: the expenses lack that of the answer.
        expenses = [*expenses, *_answer_of(fields)]
    expenses = [*expenses, *(judges or _judges_of(fields))]
    of_target = [expense for expense in expenses if not expense.is_judge]
    of_judges = [expense for expense in expenses if expense.is_judge]
    return {
        **fields,
        "usage": total_usage(of_target),
        "cost_usd": total_cost(of_target),
        "judge_usage": total_usage(of_judges) if of_judges else None,
        "judge_cost_usd": total_cost(of_judges),
        "expenses": tuple(expenses),
    }


def _answer_of(fields: Mapping[str, Any]) -> Iterator[Expense]:
    usage, cost_usd = fields.get("usage") or Usage(), fields.get("cost_usd")
    if usage != Usage() or cost_usd is not None:
        yield Expense(
            error_kind=fields.get("error_kind"),
            model=fields.get("model"),
            usage=usage,
            cost_usd=cost_usd,
        )


def _judges_of(fields: Mapping[str, Any]) -> Iterator[Expense]:
    usage, cost_usd = fields.get("judge_usage"), fields.get("judge_cost_usd")
    if usage is not None or cost_usd is not None:
        yield Expense(is_judge=True, usage=usage or Usage(), cost_usd=cost_usd)


def as_earlier(row: ResultRow) -> tuple[Expense, ...]:
    """Return the expenses of a row that is replaced by one of a later run."""
    fields = {name: getattr(row, name) for name in ("usage", "cost_usd", "error_kind", "model")}
    fields |= {"judge_usage": row.judge_usage, "judge_cost_usd": row.judge_cost_usd}
    if row.expenses is not None:
        expenses = row.expenses
    else:
        expenses = (*_answer_of(fields), *_judges_of(fields))
    return tuple(expense.model_copy(update={"is_earlier": True}) for expense in expenses)


def earlier_cost(row: ResultRow) -> float:
    """Return the part of a row's cost that is also in the rows that it replaces."""
    return total_cost(expense for expense in row.expenses or () if expense.is_earlier) or 0.0
