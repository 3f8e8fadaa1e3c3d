// One buffer or image subresource that differs: expected and observed with a slider, their difference, their values.
"use strict";

{
  const { make } = vkharness;
  const MODES = { slider: "Slider", difference: "Difference", both: "Side by side" };
  const LEFT = 58, TOP = 18; // pixels for the scale
  const MOST_LINES = 200; // of the table of bytes
  const MOST_VALUES = 8; // of the legend
  let mode = "slider"; // of every picture on the page
  const drawn = new Set(); // the surfaces in the document

  const unpacked = async (text, bits) => {
    const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const buffer = await new Response(stream).arrayBuffer();
    return bits === 8 ? new Uint8Array(buffer) : bits === 16 ? new Uint16Array(buffer) : new Uint32Array(buffer);
  };

  const colour_of = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));

  class Surface {
    constructor(said, drawing) {
      this.said = said;
      this.drawing = drawing;
      this.is_buffer = said.is_buffer;
      this.slice = 0;
      this.cut = 0.5;
      const { width, height } = drawing;
      this.factor = Math.max(1, Math.min(34, Math.floor(Math.min(620 / width, 430 / height))));
      this.colours = drawing.palette.map(([, colour]) => colour_of(colour));
      this.build();
    }

    build() {
      this.view = make("div", { class: "view" });
      this.readout = make("div", { class: "under-pointer mono", "aria-live": "off" }, "Point at the picture to see values.");
      this.buttons = Object.entries(MODES).map(([name, title]) =>
        make("button", { type: "button", on: { click: () => vkharness.set_mode(name) }, "data-mode": name }, title));
      this.range = make("input", { type: "range", min: "0", max: "1000", value: "500", "aria-label": "Expected left, observed right",
        on: { input: () => { this.cut = this.range.value / 1000; this.draw(); } } });
      this.slider = make("label", {}, "expected ", this.range, " observed");
      const zoom = (by) => () => { this.factor = Math.max(1, Math.min(64, Math.round(this.factor * by))); this.draw(); };
      const tools = make("div", { class: "tools" }, ...this.buttons,
        make("button", { type: "button", title: "smaller", on: { click: zoom(0.67) } }, "−"),
        make("button", { type: "button", title: "larger", on: { click: zoom(1.5) } }, "+"), this.slider);
      if (this.drawing.slices > 1) tools.append(this.slices());
      this.scale = make("div", { class: "scale" });
      this.bytes = make("details", { on: { toggle: () => this.fill_bytes() } }, make("summary", {}, "Bytes that differ"));
      this.element = make("div", {}, tools, this.view, this.readout, this.scale, this.bytes);
    }

    slices() {
      const options = Array.from({ length: this.drawing.slices }, (_, at) => make("option", { value: String(at) }, String(at + this.drawing.first[0])));
      const select = make("select", { on: { change: () => { this.slice = Number(select.value); this.draw(); } } }, ...options);
      this.slice_select = select;
      return make("label", {}, "slice ", select);
    }

    async load() {
      const { drawing } = this;
      [this.expected, this.observed] = await Promise.all([unpacked(drawing.expected, drawing.bits), unpacked(drawing.observed, drawing.bits)]);
      this.differs = (at) => this.expected[at] !== this.observed[at];
      this.first_wrong = this.expected.findIndex((value, at) => value !== this.observed[at]);
      this.slice = Math.max(0, Math.floor(this.first_wrong / (drawing.width * drawing.height)));
      if (this.slice_select) this.slice_select.value = String(this.slice);
      this.draw_scale();
      this.draw();
    }

    // The texels of one slice as a picture of their own size: `choose` gives the colour of a texel.
    plain(choose) {
      const { width, height } = this.drawing;
      const picture = new ImageData(width, height);
      const begin = this.slice * width * height;
      for (let at = 0; at < width * height; at += 1) {
        const [red, green, blue, alpha = 255] = choose(begin + at);
        picture.data.set([red, green, blue, alpha], at * 4);
      }
      const canvas = make("canvas", { width, height });
      canvas.getContext("2d").putImageData(picture, 0, 0);
      return canvas;
    }

    draw() {
      if (!this.expected) return;
      const value = (places) => (at) => this.colours[places[at]] || [0, 0, 0, 0];
      const [expected, observed] = [this.expected, this.observed].map((places) => this.plain(value(places)));
      for (const button of this.buttons) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
      this.slider.hidden = mode !== "slider";
      const views = {
        slider: () => [this.canvas("", (context, width, height) => {
          const cut = Math.round(this.cut * width);
          this.paste(context, expected, 0, cut, height);
          this.paste(context, observed, cut, width, height);
          context.fillStyle = "#ff00ff";
          context.fillRect(LEFT + cut - 1, TOP, 2, height);
        })],
        difference: () => [this.canvas("", (context, width, height) => this.paste(context, this.plain((at) =>
          this.differs(at) ? [255, 64, 32] : (this.colours[this.expected[at]] || [0, 0, 0]).map((part) => part / 3)), 0, width, height))],
        both: () => [["expected", expected], ["observed", observed]].map(([title, picture]) =>
          this.canvas(title, (context, width, height) => this.paste(context, picture, 0, width, height))),
      };
      this.view.replaceChildren(...views[mode]());
    }

    paste(context, picture, from, to, height) {
      context.save();
      context.beginPath();
      context.rect(LEFT + from, TOP, to - from, height);
      context.clip();
      context.imageSmoothingEnabled = false;
      context.drawImage(picture, LEFT, TOP, picture.width * this.factor, picture.height * this.factor);
      context.restore();
    }

    canvas(title, paint) {
      const width = this.drawing.width * this.factor, height = this.drawing.height * this.factor;
      const canvas = make("canvas", { width: width + LEFT + 2, height: height + TOP + 2,
        on: { pointermove: (event) => this.point(event), pointerdown: (event) => this.drag(event), pointerleave: () => this.unpoint() } });
      const context = canvas.getContext("2d");
      paint(context, width, height);
      this.draw_axes(context, width, height);
      this.frame(context);
      return make("figure", {}, canvas, ...(title ? [make("figcaption", {}, title)] : []));
    }

    draw_axes(context, width, height) {
      const { drawing } = this;
      const style = getComputedStyle(document.body);
      context.strokeStyle = style.getPropertyValue("--edge");
      context.strokeRect(LEFT - 0.5, TOP - 0.5, width + 1, height + 1);
      context.fillStyle = style.getPropertyValue("--dim");
      context.font = "11px ui-monospace, monospace";
      const step = (least) => [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].find((each) => each * this.factor >= least) || 2048;
      context.textAlign = "center";
      for (let x = 0; x < drawing.width; x += step(34)) {
        context.fillText(this.is_buffer ? `+${x * 4}` : String(x), LEFT + (x + 0.5) * this.factor, TOP - 6);
      }
      context.textAlign = "right";
      for (let y = 0; y < drawing.height; y += step(18)) {
        const row = y + drawing.first[1];
        const text = this.is_buffer ? `0x${(row * drawing.width * 4).toString(16)}` : String(row);
        context.fillText(text, LEFT - 6, TOP + (y + 0.5) * this.factor + 4);
      }
    }

    frame(context) {
      const { width, height } = this.drawing;
      const at = this.first_wrong - this.slice * width * height;
      if (this.first_wrong < 0 || at < 0 || at >= width * height) return;
      const gap = Math.max(1, Math.ceil((13 - this.factor) / 2));
      const side = this.factor + 2 * gap;
      context.strokeStyle = "#ff00ff";
      context.lineWidth = 2;
      context.strokeRect(LEFT + (at % width) * this.factor - gap, TOP + Math.floor(at / width) * this.factor - gap, side, side);
    }

    texel(event) {
      const { width, height } = this.drawing;
      const box = event.target.getBoundingClientRect();
      const x = Math.floor((event.clientX - box.left - LEFT) / this.factor), y = Math.floor((event.clientY - box.top - TOP) / this.factor);
      return x < 0 || y < 0 || x >= width || y >= height ? -1 : (this.slice * height + y) * width + x;
    }

    point(event) {
      if (mode === "slider" && event.buttons === 1) this.move_cut(event);
      const at = this.texel(event);
      if (at < 0 || this.expected[at] >= this.drawing.palette.length) return this.unpoint();
      return this.readout.replaceChildren(make("b", {}, this.place_of(at)), this.differs(at) ? "  differs\n" : "  the same\n",
        `expected ${this.value_of(this.expected[at])}\nobserved ${this.value_of(this.observed[at])}`);
    }

    drag(event) {
      if (mode === "slider") this.move_cut(event);
    }

    move_cut(event) {
      const box = event.target.getBoundingClientRect();
      this.cut = Math.min(1, Math.max(0, (event.clientX - box.left - LEFT) / (this.drawing.width * this.factor)));
      this.range.value = String(Math.round(this.cut * 1000));
      const { scrollLeft, scrollTop } = this.view;
      this.draw();
      this.view.scrollTo(scrollLeft, scrollTop);
    }

    unpoint() {
      this.readout.replaceChildren("Point at the picture to see values.");
    }

    place_of(at) {
      const { width, height, first } = this.drawing;
      const slice = Math.floor(at / (width * height)), rest = at % (width * height);
      const x = rest % width, y = Math.floor(rest / width) + first[1];
      if (this.is_buffer) return `byte ${(y * width + x) * 4} (word ${y * width + x})`;
      return `texel (${x}, ${y}${this.drawing.slices > 1 || first[0] ? `, ${slice + first[0]}` : ""})`;
    }

    value_of(place) {
      const [bytes, , number] = this.drawing.palette[place] || ["", "", ""];
      return number ? `${bytes}  ${number}` : bytes;
    }

    // The scale of the colours: the most frequent values, and how often each is expected and observed.
    draw_scale() {
      const { palette } = this.drawing;
      const counts = palette.map(() => [0, 0]);
      this.expected.forEach((place) => { if (counts[place]) counts[place][0] += 1; });
      this.observed.forEach((place) => { if (counts[place]) counts[place][1] += 1; });
      const order = palette.map((_, at) => at).sort((one, other) => Math.max(...counts[other]) - Math.max(...counts[one]));
      const told = order.length <= MOST_VALUES ? order : order.filter((at) => Math.max(...counts[at]) > 1).slice(0, MOST_VALUES);
      const entries = told.map((at) => make("span", {},
        make("span", { class: "swatch", style: `background:${palette[at][1]}` }), make("code", {}, palette[at][0]),
        ` ×${counts[at][0]} expected, ×${counts[at][1]} observed`));
      if (order.length > told.length) entries.push(make("span", {}, `${told.length ? "and " : ""}${order.length - told.length} more values`));
      this.scale.replaceChildren(...entries);
    }

    fill_bytes() {
      if (!this.bytes.open || this.bytes.childElementCount > 1 || !this.expected) return;
      const per_line = this.is_buffer ? 4 : 1;
      const lines = [];
      let left_out = 0, last = -1;
      for (let at = 0; at < this.expected.length; at += per_line) {
        const places = Array.from({ length: per_line }, (_, each) => at + each);
        if (!places.some((each) => this.differs(each))) continue;
        if (lines.length >= MOST_LINES) { left_out += 1; continue; }
        if (last >= 0 && at > last + per_line) lines.push(make("tr", { class: "gap" }, make("td", {}, "…")));
        lines.push(this.line(places));
        last = at;
      }
      const head = make("tr", {}, make("th", {}, ""), make("th", {}, "expected"), make("th", {}, "observed"));
      const rest = left_out ? [make("p", {}, `and ${left_out} more lines`)] : [];
      this.bytes.append(make("table", { class: "hex mono" }, head, ...lines), ...rest);
    }

    line(places) {
      const cell = (values) => make("td", {}, ...places.flatMap((at) => {
        const [bytes] = this.drawing.palette[values[at]] || [""];
        return [make("span", { class: this.differs(at) ? "wrong" : "" }, bytes), " "];
      }));
      const [at] = places;
      const where = this.is_buffer ? `0x${((at + this.drawing.first[1] * this.drawing.width) * 4).toString(16).padStart(4, "0")}` : this.place_of(at);
      return make("tr", {}, make("td", { class: "at" }, where), cell(this.expected), cell(this.observed));
    }
  }

  vkharness.set_mode = (name) => {
    mode = name;
    for (const surface of drawn) surface.draw();
  };
  vkharness.next_mode = () => {
    const names = Object.keys(MODES);
    vkharness.set_mode(names[(names.indexOf(mode) + 1) % names.length]);
  };
  vkharness.forget_surfaces = () => drawn.clear();

  // A surface with its caption; `drawing` is undefined where the values were not kept.
  vkharness.surface = (said, drawing, by) => {
    const caption = make("figcaption", {}, make("div", {}, make("span", { class: "what" }, said.what), `: ${said.caption}`), make("div", { class: "by" }, by));
    if (!drawing) return make("figure", { class: "surface" }, caption);
    const surface = new Surface({ ...said, is_buffer: !said.is_image }, drawing);
    drawn.add(surface);
    surface.load();
    if (drawing.expected && drawing.width * drawing.height * drawing.slices < drawing.total) {
      caption.append(make("div", { class: "by" }, `Drawn is the part around the first difference, from row ${drawing.first[1]} on.`));
    }
    return make("figure", { class: "surface" }, caption, surface.element);
  };
}
