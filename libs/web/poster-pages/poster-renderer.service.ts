import { Injectable } from '@nestjs/common';
import { createRequire } from 'node:module';
import type PDFDocument from 'pdfkit';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import { getOwnerKey } from '#platform/database/database-waits.js';
import { FairQueue } from '#platform/kernel/fair-queue.js';
import { outlineRun, type Letters } from '#loyalty/posters/letters.js';
import type { Drawing, DrawnShape } from './drawing.js';
import { renderPosterSvg, type Outline } from './poster-svg.js';

const require = createRequire(import.meta.url);

/** A PDF is rendered on the thread that handles requests, and a PNG takes 40 MB while it is rendered. */
const CONCURRENCY = 1;
const MAX_WAITING = 20;
const WAIT_MS = 15_000;
const TIMEOUT_SECONDS = 10;
const PIXELS_PER_POINT = 300 / 72;

/** No OpenType features. An explicit list keeps pdfkit from laying out word by word, without kerning across spaces. */
const FEATURES: never[] = [];

export type Format = 'pdf' | 'png' | 'svg';

/** A drawing with the fonts of its texts. */
export type DrawnDocument = { drawing: Drawing; letters: Letters };

/** Renders documents from drawings, fairly among stores. Equal drawings give equal bytes. */
@Injectable()
export class PosterRenderer {
  private readonly queue = new FairQueue({
    concurrency: CONCURRENCY,
    maxWaiting: MAX_WAITING,
    waitMs: WAIT_MS,
  });

  /** Renders a drawing. @throws UnavailableError when too many documents wait */
  render(accountId: number, format: Format, draw: () => Awaitable<DrawnDocument>): Promise<Buffer> {
    return this.queue.run(getOwnerKey(accountId), async () => {
      const document = await draw();
      if (format === 'pdf') return this.pdf(document);
      return format === 'png' ? this.png(document) : this.svg(document);
    });
  }

  private async svg({ drawing, letters }: DrawnDocument): Promise<Buffer> {
    return Buffer.from(renderPosterSvg(drawing, (...text) => letters.outline(...text)));
  }

  private async png({ drawing, letters }: DrawnDocument): Promise<Buffer> {
    const outline: Outline = (...text) => letters.outline(...text);
    const svg = renderPosterSvg(drawing, outline, PIXELS_PER_POINT);
    const { sharp } = await import('#platform/kernel/pictures.js');
    return sharp(Buffer.from(svg))
      .removeAlpha()
      .withMetadata({ density: 300 })
      .png()
      .timeout({ seconds: TIMEOUT_SECONDS })
      .toBuffer();
  }

  private async pdf({ drawing, letters }: DrawnDocument): Promise<Buffer> {
    const { margin, bleed, width, height } = drawing;
    const Pdf = require('pdfkit') as typeof PDFDocument;
    const document = new Pdf({
      pdfVersion: '1.7',
      size: [width + 2 * margin, height + 2 * margin],
      margin: 0,
      lang: drawing.lang,
      displayTitle: true,
      info: {
        Title: drawing.title,
        Author: drawing.author,
        Creator: 'Inkpad',
        Producer: 'Inkpad',
        // The poster's, so that the same poster gives the same bytes at any time.
        CreationDate: new Date(drawing.createdAt),
      },
    });
    const box = (around: number) => [
      margin - around,
      margin - around,
      margin + width + around,
      margin + height + around,
    ];
    Object.assign(document.page.dictionary.data, { TrimBox: box(0), BleedBox: box(bleed) });
    document.translate(margin, margin);
    for (const shape of drawing.shapes) this.add(document, shape, drawing, letters);
    document.end();
    const parts: Buffer[] = [];
    for await (const part of document) parts.push(part as Buffer);
    return Buffer.concat(parts);
  }

  private add(
    document: PDFKit.PDFDocument,
    shape: DrawnShape,
    paper: Drawing,
    letters: Letters,
  ): void {
    if (shape.kind === 'turned') {
      document.save().rotate(180, { origin: [paper.width / 2, paper.height / 2] });
      for (const part of shape.shapes) this.add(document, part, paper, letters);
      document.restore();
      return;
    }
    if (shape.kind === 'picture') {
      const { x, y, width, height, png } = shape;
      document.image(png, x, y, { width, height });
      return;
    }
    document.fillColor(shape.fill);
    switch (shape.kind) {
      case 'rectangle':
        document.roundedRect(shape.x, shape.y, shape.width, shape.height, shape.radius).fill();
        break;
      case 'disc':
        document.circle(shape.x, shape.y, shape.radius).fill();
        break;
      case 'path':
        document
          .save()
          .translate(shape.x, shape.y)
          .scale(shape.scale)
          .path(shape.path)
          .fill()
          .restore();
        break;
      case 'text': {
        let { x } = shape;
        for (const run of letters.runs(shape.text, shape.weight)) {
          const { name, file } = run.face;
          if (file) {
            const options = {
              lineBreak: false,
              baseline: 'alphabetic',
              features: FEATURES,
            } as const;
            document.registerFont(name, file).font(name).fontSize(shape.size);
            document.text(run.text, x, shape.y, options);
          } else {
            // Screen readers take the text from the mark (ISO 32000-1, section 14.9.4).
            document.markContent('Span', { actual: run.text });
            document.path(outlineRun(run, shape.weight, { ...shape, x })).fill();
            document.endMarkedContent();
          }
          x += run.width * shape.size;
        }
      }
    }
  }
}
