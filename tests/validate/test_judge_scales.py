"""Which prompts of judges ask for another scale than 0 to 1."""

from __future__ import annotations

import time

import pytest

from agentv_ci.validate.rules.judge_scales import asked_scale

ASKING = """\
How warm is this, from 1 to 10?
How warm is this answer? Rate it from 1 to 5.
On a scale of 1 to 10, how polite is the answer?
Rate the answer on a scale from 0 to 10 {{ candidate_answer }}
Give the answer a score between 1 and 5.
Score: 1-5
Score (1–10), where 10 is best.
Return a score from 0 to 100.
Score the reply 0-100 based on accuracy.
Give a mark out of 10.
How good is this, out of ten?
Score out of 100: {{ candidate_answer }}
Rate {{ candidate_answer }} on a five-point Likert scale.
Use a 5-point scale.
Use a 1-5 rating.
Give it one to five stars.
How many stars would you give?
Rate the answer in stars.
Rate the politeness as a percentage.
Say in percent how complete the answer is.
What percentage of the criteria does it meet? Score it accordingly.
Award up to 10 points.
Give 2 points if it is right, 1 if partly, 0 if wrong.
Give one point for each criterion that is met.
Score it 0, 1 or 2.
Rate it 1, 2, 3, 4, or 5.
1 = poor, 5 = excellent
5: excellent
10 being the best
The maximum score is 10.
Score from 1 (worst) to 5 (best).
Read the answer and rate it from one to ten.
Does it help? Rate 1-5.
Check the facts and grade it from 1 to 6.
Output an integer between 1 and 7.
The score must be between 0 and 10.
Answers are graded 1..5.
Rate helpfulness [1, 5].
Give X/10.
Rate it, e.g. 7/10.
score: int (1-10)
"score": 1-5
Evaluate quality from 0% to 100%.
Score -1 to 1.
Bewerte die Antwort von 1 bis 10.
Wie höflich ist das auf einer Skala von 1 bis 5?
Note la réponse de 1 à 10.
Puntúa la respuesta del 1 al 10.
请给回答打分，1到10分。
Grade the essay from 0 to 20.
How would you rate this between 1 and 10?
To what extent is it polite, 1 to 5?
Rating: /10
Mark this answer out of 20, with 20 for a perfect one.
Your rating should be a number from 1 to 4.
The answer should be scored from 1 to 5.
Rate the answer from 1-to-5.
Score it 1 - 10.
Use the scale 1, 3, 5.
How would you score this, 0–100?
Give a rating (0 = bad, 10 = good).
Rate in the range [0,10].
On a ten point scale, how good is it?
Assign a number between 0 and 10 as the score.
Score in %.
Give points from 0 to 15.
What mark out of 20 does it deserve?
Rate out of 5 stars.
Give 0-5 stars.
Score 5 if right, 0 if wrong.
Give 5 for a perfect answer.
Score: /5
Rate each aspect 1-5, then average.
Rate politeness 1-5.
Your score is a number from 1 through 5 inclusive.
Evaluate the response and give it a score between 1 and 100.
As a strict teacher, grade this from 0-20.
Rate {{ candidate_answer }} 1-10
- 5: Excellent answer
Please provide a score (0-10) and reasons.
Rate from 1 (very cold) to 10 (very warm).
"""

OTHERS = """\
How warm is this? {{ candidate_answer }}
Score from 0 to 1.
Score between 0.0 and 1.0, where 1.0 is best.
Rate it 0-1.
Score 1 if it is polite, else 0.
Score 0, 0.5 or 1.
Give 1 point if correct, 0 otherwise.
Give full marks only if it names the window of 30 days.
Start at 1.0 and deduct 0.2 points for every mistake.
Does the answer name a window of 10 to 14 days?
Is the answer 1 to 3 sentences long?
The answer should have 3 to 5 bullet points.
The answer must give a number from 1 to 10.
Does it list pages 1-10?
How well does it explain steps 1 to 5 of the recipe?
How accurately does it quote chapters 1 through 10?
Does it say that 4 out of 5 dentists agree?
Does it mention the discount of 20 percent?
Is it 100% correct?
Does it give the discount as a percentage?
Mentions that the hotel has 5 stars.
Does it name the 5-star hotel?
Explains the pH scale from 0 to 14.
Does the answer explain that users rate films on a scale from 1 to 5?
Check that opening hours are 9-17.
Judge whether it names at least 5 of 10 ingredients.
Rate how well it covers the years 1939 to 1945.
Score 1 when all 10 questions are answered.
How polite is the answer to a customer who waited 3 to 5 days?
Score how well the answer explains version 1.0 to 2.0 changes.
Is the product out of stock?
Score 0 when the answer is longer than 200 words.
The customer rated the film 4 out of 5.
Judge the tone: 24/7 support must be mentioned.
Rate the answer by how clearly it says the price is 10 to 20 dollars.
Names a date between 1 and 15 May.
Rate how many of the 3 criteria are met, from 0 (none) to 1 (all).
How complete is the list of 10 items?
Does the answer rate the hotel from 1 to 5?
Judge only what is marked 1 to 3 in the text below.
Score the answer against points 1 to 4 below.
Evaluate the answer in terms of 1) facts, 2) tone, 3) length.
1. Read the answer.
2. Judge the tone.
Criteria 1-3 are required.
The article says inflation rose from 2 to 5 percent.
The score is 1.0 if the answer gives 5 reasons, 0.5 if it gives 3, else 0.0.
Grade 5 pupils must understand the answer.
How likely is it that a reader aged 10 to 12 understands this?
Be strict; a score above 0.5 needs 2 sources.
Is the ratio between 1 and 10?
Score 1 if the answer is a number from 1 to 10.
How friendly is it? Answer with a number from 0 to 1.
The user wants a rating of the film out of 10.
Does the reply contain a score out of 100?
Score 0 to 1 in steps of 0.1.
1.0 = perfect, 0.0 = terrible
Score 1/2 when half of it is right.
Score the plan for days 1 to 5.
Rate the answer, which is from 1 to 3 sentences long, for tone.
Judge the clarity of sections 2-4.
How well does it sum up the 10 best and 5 worst films?
Give a score of 1 if it names 3 out of 5 causes.
Grade the answer: 0 = wrong, 1 = right.
The judge has 10 minutes.
Score whether 3/4 cup of sugar is named.
Rate 1 for yes and 0 for no.
Assess whether the top 10 are listed.
What is 1 to 10?
Evaluate the score function f(x) for the answer.
The answer is good when it gives 5 points.
Rate the summary of the book "From 1 to 10 people".
Score 0.8 for a good answer and 0.2 for a poor one.
"""


@pytest.mark.parametrize("prompt", ASKING.splitlines())
def test_prompt_asks_for_a_scale(prompt: str) -> None:
    assert asked_scale(prompt) is not None
    assert asked_scale(f"You judge an answer of our support.\n{prompt}\n{{{{ candidate_answer }}}}") is not None


@pytest.mark.parametrize("prompt", OTHERS.splitlines())
def test_numbers_of_other_things_are_no_scale(prompt: str) -> None:
    assert asked_scale(prompt) is None


def test_all_other_prompts_together_ask_for_none() -> None:
    assert asked_scale(OTHERS) is None
    assert asked_scale(f"{OTHERS}{ASKING.splitlines()[0]}") == "1 to 10"


@pytest.mark.parametrize("part", ["1 ", "1 (a", "1 is a b c ", "1/", "1,", "a", " ", "out of ", "1 point ", "score\n"])
def test_long_prompts_are_read_in_time(part: str) -> None:
    begun = time.process_time()
    asked_scale(f"rate {part * (100_000 // len(part))}")
    assert time.process_time() - begun < 5
