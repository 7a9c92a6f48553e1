/** Pixels as sharp gives them: red, green, blue and alpha, each from 0 to 255, row by row. */
export type RgbaPicture = { data: Uint8Array; width: number; height: number };

/** A part of a picture, in pixels. */
export type PictureArea = { left: number; top: number; width: number; height: number };

/** Below it nobody sees anything. */
const MIN_ALPHA = 12;
/** From it on each part of a colour counts as white: a JPEG is never quite even. */
const MIN_WHITE = 245;

/**
 * Finds a picture without its empty margin: the transparent one of a picture that has transparent pixels, else a white
 * one on all four sides. Other colours, and white at one side, may be the edge of a flag, a badge or an avatar.
 * @returns the whole picture if all of it is empty
 */
export function findContent(picture: RgbaPicture): PictureArea {
  const { data, width, height } = picture;
  const isTransparent = isTransparentSomewhere(data);
  const isEmpty = isTransparent
    ? (at: number) => (data[at + 3] ?? 0) < MIN_ALPHA
    : (at: number) => Math.min(data[at] ?? 0, data[at + 1] ?? 0, data[at + 2] ?? 0) >= MIN_WHITE;
  const isEmptyLine = (start: number, step: number, count: number) => {
    for (let index = 0; index < count; index++) {
      if (!isEmpty((start + index * step) * 4)) return false;
    }
    return true;
  };
  let top = 0;
  while (top < height && isEmptyLine(top * width, 1, width)) top++;
  if (top === height) return { left: 0, top: 0, width, height };
  let bottom = height;
  while (isEmptyLine((bottom - 1) * width, 1, width)) bottom--;
  const isEmptyColumn = (x: number) => isEmptyLine(top * width + x, width, bottom - top);
  let left = 0;
  while (isEmptyColumn(left)) left++;
  let right = width;
  while (isEmptyColumn(right - 1)) right--;
  const isFramed = left > 0 && top > 0 && right < width && bottom < height;
  if (!isTransparent && !isFramed) return { left: 0, top: 0, width, height };
  return { left, top, width: right - left, height: bottom - top };
}

/** Tells whether a picture has pixels through which nothing but its ground is seen. */
function isTransparentSomewhere(data: Uint8Array): boolean {
  for (let at = 3; at < data.length; at += 4) if ((data[at] ?? 0) < MIN_ALPHA) return true;
  return false;
}
