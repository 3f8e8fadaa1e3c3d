// What the playground takes before its first answer and for a later one, in processor time: node playground.mjs FOLDER ZIP
import { readFileSync } from "node:fs";

const [folder, zip] = process.argv.slice(2);
const { loadPyodide } = await import(`${folder}/pyodide.mjs`);
const now = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
const TEXT = `submit q1
    CLEAR_TRANSFER_WRITE a
    barrier CLEAR > COPY
    COPY_TRANSFER_READ a; COPY_TRANSFER_WRITE b
host reads b
`;
const laps = [now()];
const python = await loadPyodide();
laps.push(now());
python.unpackArchive(new Uint8Array(readFileSync(zip)).buffer, "zip", { extractDir: "/judges" });
laps.push(now());
python.runPython("import sys; sys.path.insert(0, '/judges')\nfrom vkharness.text_form import playground");
laps.push(now());
const answer = python.runPython("playground.answer");
answer(TEXT, 4);
laps.push(now());
const later = [];
for (let at = 0; at < 20; at += 1) {
  const begun = now();
  answer(TEXT, 4);
  later.push(now() - begun);
}
later.sort((one, other) => one - other);
const parts = laps.slice(1).map((lap, at) => lap - laps[at]);
console.log([...parts, laps.at(-1) - laps[0], later[10]].map((each) => each.toFixed(0).padStart(8)).join(""));
