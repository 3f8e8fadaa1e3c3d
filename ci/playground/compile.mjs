// Compiles modules with the Python of Pyodide, whose byte code no other Python makes: node compile.mjs PYODIDE SOURCES OUT
import { readFileSync, writeFileSync } from "node:fs";

const [pyodide, sources, out] = process.argv.slice(2);
const { loadPyodide } = await import(`${pyodide}/pyodide.mjs`);
const python = await loadPyodide();
python.FS.writeFile("/sources.zip", readFileSync(sources));
python.runPython(`
import importlib._bootstrap_external as external
import zipfile

with zipfile.ZipFile("/sources.zip") as given, zipfile.ZipFile("/judges.zip", "w", zipfile.ZIP_DEFLATED) as made:
    for name in sorted(given.namelist()):
        data = given.read(name)
        if name.endswith(".py"):
            code = compile(data, name, "exec", dont_inherit=True)
            name, data = name + "c", bytes(external._code_to_timestamp_pyc(code))
        made.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
`);
writeFileSync(out, python.FS.readFile("/judges.zip"));
