"""Findings, results and orders for people: all words and pictures are made here.

| module | what it holds |
|---|---|
| `text`, `rules` | findings in words; the rule that decided one |
| `findings_json` | the JSON form |
| `rows` | what each judge said about a scenario |
| `story_text` | what many rows have in common that need a look |
| `replays`, `replay_text` | replays as jobs for a worker, and their results in words |
| `pictures`, `texels` | expected, observed and difference as images |
| `graph`, `neighbourhood` | the partial order as a drawing, and which part of it to draw |
| `console` | the terminal |
"""
