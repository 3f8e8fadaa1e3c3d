// The judges, beside the page: they answer one text at a time. Nothing is fetched but the files beside this one.
import { loadPyodide } from "./pyodide.mjs";

const here = new URL("./", import.meta.url).href;
const starting = (async () => {
  const [python, judges] = await Promise.all([
    loadPyodide({ indexURL: here }),
    fetch(`${here}judges.zip`).then((answer) => {
      if (!answer.ok) throw new Error(`judges.zip: ${answer.status}`);
      return answer.arrayBuffer();
    }),
  ]);
  python.unpackArchive(judges, "zip", { extractDir: "/judges" });
  python.runPython("import sys; sys.path.insert(0, '/judges')\nfrom vkharness.text_form import playground");
  return { words: python.runPython("playground.words()"), answer: python.runPython("playground.answer") };
})();

starting.then(
  ({ words }) => postMessage({ words: JSON.parse(words) }),
  (error) => postMessage({ failed: String(error) }),
);

addEventListener("message", async ({ data: { id, text, line } }) => {
  const { answer } = await starting;
  const begun = performance.now();
  try {
    const said = JSON.parse(answer(text, line));
    postMessage({ id, said, took: performance.now() - begun });
  } catch (error) {
    postMessage({ id, said: { error: { line: 1, column: 1, why: `the judges failed: ${error}` } }, took: 0 });
  }
});
