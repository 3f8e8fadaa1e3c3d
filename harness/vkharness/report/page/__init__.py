"""The page of a run: one folder that a browser opens from the disk, with no server, network or framework.

| file of the folder | what it holds |
|---|---|
| `index.html`, `page.css`, `*.js` | the page; the same for every run, but for the head of `index.html` |
| `data/run.js` | the run, and a line for each row: what the list and its filters need |
| `data/N.js` | everything else about the rows of one scenario; read when one of them is opened |
| `traces/` | the traces of rows that need a look, so that the folder can be sent to somebody |

Data are JavaScript files, because pages from the disk may read no others. Everything that a trace, a scenario or a
results file gave reaches the document as text: scripts set `textContent`, the template escapes, and the page's own
policy forbids scripts that are not files of the folder.

| module | what it does |
|---|---|
| `code_lines` | the source of a scenario with its tokens, and the lines of its dependencies |
| `row_pictures` | what a row's records and values give to draw |
| `scenario_data` | everything about the rows of one scenario |
| `folder` | the files of the page |
"""
