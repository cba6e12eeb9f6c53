// The pixels of a mask, one byte each (0 or 255): to what is shown, to a PNG, from an image. Knows nothing of the page.
window.aivistaPixels = (() => {
  const HARD = 128, FLOOR = 0.35;

  const painted = alpha => { let count = 0; for (let at = 0; at < alpha.length; at++) if (alpha[at]) count++; return count; };
  const percent = alpha => {
    const share = 100 * painted(alpha) / alpha.length;
    return share === 0 ? "" : share < 0.1 ? "< 0.1" : share < 1 || (share > 99 && share < 100) ? share.toFixed(1) : String(Math.round(share));
  };
  const filled = (alpha, { w, h }, [red, green, blue]) => {
    const image = new ImageData(w, h), pixels = new Uint32Array(image.data.buffer);
    for (let at = 0; at < alpha.length; at++) pixels[at] = (alpha[at] << 24 | blue << 16 | green << 8 | red) >>> 0;
    return image;
  };
  const reaches = (alpha, w, h) => {  // how deep in the mask each pixel lies, in thirds of a pixel; the picture's edge is no border
    const reach = new Uint16Array(alpha.length).fill(65535);
    for (let y = 0, at = 0; y < h; y++) for (let x = 0; x < w; x++, at++) {
      if (!alpha[at]) { reach[at] = 0; continue; }
      let least = x ? reach[at - 1] + 3 : 65535;
      if (y) { least = Math.min(least, reach[at - w] + 3); if (x) least = Math.min(least, reach[at - w - 1] + 4); if (x < w - 1) least = Math.min(least, reach[at - w + 1] + 4); }
      reach[at] = Math.min(least, 65535);
    }
    for (let y = h - 1, at = alpha.length - 1; y >= 0; y--) for (let x = w - 1; x >= 0; x--, at--) {
      let least = reach[at];
      if (x < w - 1) least = Math.min(least, reach[at + 1] + 3);
      if (y < h - 1) { least = Math.min(least, reach[at + w] + 3); if (x) least = Math.min(least, reach[at + w - 1] + 4); if (x < w - 1) least = Math.min(least, reach[at + w + 1] + 4); }
      reach[at] = least;
    }
    return reach;
  };
  const softened = ({ alpha, w, h }, feather) => {  // what is shown: the edge fades inwards as far as the change will, but stays visible
    const width = 3 * feather * Math.max(w, h) / 1024, reach = reaches(alpha, w, h), shown = new Uint8Array(alpha.length);
    for (let at = 0; at < shown.length; at++) {
      if (!reach[at]) continue;
      const depth = Math.min(1, reach[at] / width);
      shown[at] = 255 * Math.max(FLOOR, depth * depth * (3 - 2 * depth));
    }
    return shown;
  };
  const toPng = ({ alpha, w, h }) => {
    const out = Object.assign(document.createElement("canvas"), { width: w, height: h });
    const image = new ImageData(w, h), pixels = new Uint32Array(image.data.buffer);
    for (let at = 0; at < pixels.length; at++) pixels[at] = alpha[at] ? 0xffffffff : 0xff000000;
    out.getContext("2d", { willReadFrequently: true }).putImageData(image, 0, 0);
    return out.toDataURL("image/png").split(",")[1];
  };
  const fromImage = (image, { w, h }) => {  // white, and nothing darker or transparent, is what changes
    const read = Object.assign(document.createElement("canvas"), { width: w, height: h }).getContext("2d");
    read.drawImage(image, 0, 0, w, h);
    const { data } = read.getImageData(0, 0, w, h), alpha = new Uint8Array(w * h);
    for (let at = 0, from = 0; at < alpha.length; at++, from += 4) {
      const light = (0.299 * data[from] + 0.587 * data[from + 1] + 0.114 * data[from + 2]) * data[from + 3] / 255;
      alpha[at] = light >= HARD ? 255 : 0;
    }
    return alpha;
  };
  const fromStrokes = ({ data }) => {
    const alpha = new Uint8Array(data.length / 4);
    for (let at = 0; at < alpha.length; at++) alpha[at] = data[4 * at + 3] >= HARD ? 255 : 0;
    return alpha;
  };
  const isSame = (one, other) => { let at = 0; while (at < one.length && one[at] === other[at]) at++; return at === one.length; };
  const decoded = async png => createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());

  return { painted, percent, filled, softened, toPng, fromImage, fromStrokes, isSame, decoded };
})();
