import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import sharp from 'sharp';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { cpuTime, cpuTimeOf } from './cpu-time.mjs';
import { table, us, whole } from './figures.mjs';
import { setUpInkpad } from './inkpad.mjs';
import { onStage } from './stage.mjs';

const CONCURRENCY = 8;
const STORES = 4;
const CACHED_ROUNDS = 20;
const LOOKS = {
  stampsRequired: 10,
  stampIcon: 'coffee',
  stampColor: '#6B4226',
  stampBackgroundColor: '#FFFFFF',
  cardColor: '#6B4226',
  stripType: 'color',
  stripColor: null,
  stripOpacity: 100,
  stripPreset: null,
  stripPicture: null,
};
const REWARDS = [5, 10].map((stampsRequired) => ({ stampsRequired, active: true }));

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({ args, options: { images: { type: 'string', default: '400' } } });
  const images = Number(values.images);
  if (!Number.isInteger(images) || images < 40) {
    throw new StartFailure(`--images ${values.images}: must be a whole number of at least 40`);
  }
  return onStage(async (stage) => {
    const { env } = await setUpInkpad(stage, 'bench_images');
    const service = await serviceOf(env);
    try {
      const rows = [
        ['strip', 'size', 'drawn', 'from the table', 'from memory', 'bytes', 'CPU µs to draw'],
      ];
      for (const [type, looks] of Object.entries(await layers(service.pool))) {
        for (const size of ['3x', '1x', 'hero']) {
          rows.push(await measure(service, { type, looks, size, images }));
        }
      }
      console.log(`Images a second, ${CONCURRENCY} asked for at once:`);
      console.log(table(rows));
      return 0;
    } finally {
      await service.end();
    }
  });
}

async function serviceOf(env) {
  const from = (path) => import(`../dist/libs/${path}.js`);
  const { readConfig } = await from('platform/kernel/config');
  const { createDataSource, getPool } = await from('platform/database/data-source');
  const { createStripDesign } = await from('outbound/card-images/strip-design');
  const { StripRenderer } = await from('outbound/card-images/strip-renderer.service');
  const { CardImages } = await from('outbound/card-images/card-images.service');
  const config = readConfig({ ...process.env, ...env });
  const source = await createDataSource(config, 'bench').initialize();
  const pool = getPool(source);
  return {
    pool,
    createStripDesign,
    /** As in a process that has just started. */
    newImages: () => new CardImages(pool, new StripRenderer(pool), config),
    end: () => source.destroy(),
  };
}

/** A picture with as much detail as a photograph. */
async function layers(pool) {
  const noise = { type: 'gaussian', mean: 128, sigma: 40 };
  const png = await sharp({ create: { width: 1125, height: 432, channels: 3, noise } })
    .blur(2)
    .png()
    .toBuffer();
  const hash = createHash('sha256').update(png).digest('hex');
  await pool.query('insert into pictures (hash, account_id, png) values ($1, 1, $2)', [hash, png]);
  return {
    color: {},
    preset: { stripType: 'preset', stripPreset: 'bakery' },
    image: { stripType: 'image', stripPicture: hash },
  };
}

async function measure({ createStripDesign, newImages }, { type, looks, size, images }) {
  const service = newImages();
  // Eleven images of a design: none filled to all of them.
  const urls = [];
  for (let i = 0; urls.length < images; i++) {
    const cardColor = `#${(i + 1).toString(16).padStart(6, '0')}`.toUpperCase();
    const design = createStripDesign({ ...LOOKS, ...looks, cardColor }, REWARDS);
    const hash = await service.remember((i % STORES) + 1, design);
    for (let filled = 0; filled <= 10 && urls.length < images; filled++) {
      urls.push([hash, filled, size]);
    }
  }
  let bytes = 0;
  const { result: drawn, used } = await cpuTimeOf({ process: () => cpuTime(process.pid) }, () =>
    perSecond(service, urls, (png) => (bytes += png.length)),
  );
  const fromTable = await perSecond(newImages(), urls);
  const few = urls.slice(0, 20);
  for (const one of few) await service.findPng(...one);
  const again = Array.from({ length: CACHED_ROUNDS * 20 }, (_, i) => few[i % few.length]);
  const fromMemory = await perSecond(service, again);
  const figures = [drawn, fromTable, fromMemory, bytes / images].map(whole);
  return [type, size, ...figures, us(used.process === null ? null : used.process / images)];
}

async function perSecond(service, paths, seen = () => undefined) {
  const left = [...paths];
  const start = performance.now();
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      for (let one = left.pop(); one; one = left.pop()) {
        const png = await service.findPng(...one);
        if (png?.subarray(1, 4).toString() !== 'PNG') throw new Error(`no image: ${one.join(' ')}`);
        seen(png);
      }
    }),
  );
  return paths.length / ((performance.now() - start) / 1_000);
}
