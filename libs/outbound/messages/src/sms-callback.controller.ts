import { Body, Controller, Headers, HttpCode, Param, Post } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { NotFoundError } from '#kernel/errors.js';
import { AvailableWhen } from '#http/availability.js';
import { TakesForm, type Form } from '#http/form-bodies.js';
import { isSignedSms, parseSmsArrival, createSmsCallbackUrl } from './sms-callback.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Reports come in any order, and of an attempt whose answer was lost too: one that has arrived has arrived. */
const RECORD = {
  name: 'card_messages_arrival',
  text: `update card_messages set arrival = $3, arrival_code = $4
         where id = $1 and channel = 'sms' and (provider_id is null or provider_id = $2)
           and arrival is distinct from 'delivered'`,
};

/** Called by the SMS provider without a token: its signature says who it is. */
@Controller('sms/status/:message_id')
export class SmsCallbackController {
  constructor(
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  /** @throws NotFoundError also without the signature, so that nobody learns which messages there are */
  @Post()
  @HttpCode(204)
  @TakesForm()
  @AvailableWhen(({ sms }: Config) => sms !== null)
  async receive(
    @Param('message_id') id: string,
    @Headers('x-twilio-signature') signature: unknown,
    @Body() form: Form,
  ): Promise<void> {
    const { sms, publicUrl } = this.config;
    const url = UUID.test(id) ? createSmsCallbackUrl(publicUrl, id) : undefined;
    if (!sms || !url || !isSignedSms(url, form, sms.token, signature)) {
      throw new NotFoundError('Path');
    }
    const report = parseSmsArrival(form);
    if (!report) return;
    await this.pool.query({
      ...RECORD,
      values: [id, report.providerId, report.arrival, report.code],
    });
  }
}
