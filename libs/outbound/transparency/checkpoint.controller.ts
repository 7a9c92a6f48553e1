import { Controller, Get, Header } from '@nestjs/common';
import { NotFoundError } from '#platform/kernel/errors.js';
import { Checkpoints } from './checkpoints.service.js';

/** Serves the newest checkpoint without a token. It is not in the OpenAPI document, and has the rate limit of pages. */
@Controller('checkpoint')
export class CheckpointController {
  constructor(private readonly checkpoints: Checkpoints) {}

  @Get()
  @Header('content-type', 'text/plain; charset=utf-8')
  @Header('cache-control', 'public, max-age=10')
  async getNewest(): Promise<string> {
    const newest = await this.checkpoints.findNewest();
    if (!newest) throw new NotFoundError('Checkpoint');
    return newest.note;
  }
}
