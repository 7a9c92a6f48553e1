import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { getNow } from '#platform/kernel/clock.js';
import type { Config } from '#configuration/config.js';
import { AvailableWhen } from '#platform/http/route-access.js';
import { GoogleCallbacks } from './callbacks.service.js';

/** Receives Google's callbacks, which are authenticated by their signature instead of a token. */
@Controller('wallet/google/callback')
export class GoogleCallbackController {
  constructor(private readonly callbacks: GoogleCallbacks) {}

  @Post()
  @HttpCode(200)
  @AvailableWhen(({ google }: Config) => google !== null)
  async receive(@Body() body: unknown): Promise<void> {
    await this.callbacks.receive(body, getNow());
  }
}
