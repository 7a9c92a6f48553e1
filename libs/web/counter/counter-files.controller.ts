import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import { Config } from '#configuration/config.js';
import { getPackageFileUrl } from '#platform/kernel/package-file.js';
import { negotiateEncoding, negotiateLanguage } from '#platform/http/negotiation.js';
import { loadAsset } from '#web/pages/assets.js';
import { WithoutSession } from '#web/pages/current-user.js';
import { getRootPath } from '#web/pages/page.js';
import { getTranslations, LANGUAGE_CODES } from '#translations/translations.js';
import { createCounterManifest, WORKER_SCRIPT } from './counter-page.js';

const decompress = promisify(brotliDecompress);
const ICON = loadAsset(import.meta.url, './assets/counter-icon.svg');

/** Serves a file of the decoder from `data`. tools/generate/zxing.mjs says where it comes from. */
class DecoderFile {
  private readonly compressed: Buffer;
  readonly version: string;

  constructor(
    name: string,
    private readonly type: string,
  ) {
    this.compressed = readFileSync(getPackageFileUrl(`data/${name}.br`));
    this.version = createHash('sha256').update(this.compressed).digest('base64url').slice(0, 12);
  }

  /** Sends the file, which browsers keep: its address has its version. */
  async send(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const isBrotli = negotiateEncoding(request) === 'br';
    void reply
      .type(this.type)
      .header('vary', 'accept-encoding')
      .header('cache-control', 'public, max-age=31536000, immutable');
    if (isBrotli) void reply.header('content-encoding', 'br');
    await reply.send(isBrotli ? this.compressed : await decompress(this.compressed));
  }
}

const SCRIPT = new DecoderFile('zxing-reader.js', 'text/javascript; charset=utf-8');
const WASM = new DecoderFile('zxing-reader.wasm', 'application/wasm');

/** The paths of the decoder below that of the counter. */
export const DECODER_PATHS = {
  script: `/counter/decoder.js?v=${SCRIPT.version}`,
  wasm: `/counter/decoder.wasm?v=${WASM.version}`,
};

/** Serves what the counter is installed with, and the decoder for browsers that read no barcodes themselves. */
@Controller('counter')
export class CounterFilesController {
  private readonly root: string;

  constructor(config: Config) {
    this.root = getRootPath(config);
  }

  @Get('manifest.webmanifest')
  @WithoutSession()
  async showManifest(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const { t, locale } = getTranslations(negotiateLanguage(request, LANGUAGE_CODES));
    await reply
      .type('application/manifest+json; charset=utf-8')
      .header('cache-control', 'no-cache')
      .send(JSON.stringify(createCounterManifest(t.counter.title, locale, this.root)));
  }

  @Get('icon.svg')
  @WithoutSession()
  async showIcon(@Res() reply: FastifyReply): Promise<void> {
    await reply.type(ICON.type).header('cache-control', 'no-cache').send(ICON.text);
  }

  @Get('worker.js')
  @WithoutSession()
  async showWorker(@Res() reply: FastifyReply): Promise<void> {
    await reply
      .type('text/javascript; charset=utf-8')
      .header('cache-control', 'no-cache')
      .header('content-security-policy', "default-src 'none'; connect-src 'self'")
      // By default its scope would not contain the page at /counter.
      .header('service-worker-allowed', `${this.root}/counter`)
      .send(WORKER_SCRIPT);
  }

  @Get('decoder.js')
  @WithoutSession()
  async showDecoder(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    await SCRIPT.send(request, reply);
  }

  @Get('decoder.wasm')
  @WithoutSession()
  async showDecoderModule(
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await WASM.send(request, reply);
  }
}
