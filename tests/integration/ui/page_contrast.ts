/**
 * Run in a page: every text that can be seen and whose contrast with what is behind it is below 4.5, of borders of
 * fields below 3. Whatever is disabled may be pale.
 */
export const WORST_CONTRASTS = `(() => {
  const channels = (color) => {
    const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const light = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const contrast = (a, b) => {
    const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (node) => {
    for (let at = node; at !== null; at = at.parentElement) {
      const color = channels(getComputedStyle(at).backgroundColor);
      if (color.a === 1) return color;
    }
    return { r: 255, g: 255, b: 255 };
  };
  const worst = [];
  for (const node of document.querySelectorAll("body *")) {
    if (!node.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (node.matches(":disabled, [aria-disabled=true], noscript, svg *")) continue;
    const style = getComputedStyle(node);
    const isField = node.matches("input, select, textarea");
    const hasText = [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim() !== "");
    const text = hasText || isField ? contrast(channels(style.color), ground(node)) : 21;
    const border = isField ? contrast(channels(style.borderTopColor), ground(node.parentElement)) : 21;
    const name = node.tagName + "." + node.className + " " + node.textContent.slice(0, 20);
    if (text < 4.5) worst.push(name + " text " + text.toFixed(2));
    if (border < 3) worst.push(name + " border " + border.toFixed(2));
  }
  return worst;
})()`;
