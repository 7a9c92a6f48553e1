import { Body, Controller, Headers, HttpCode, Param, Post } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { AvailableWhen, WorksInMaintenance } from '#platform/http/route-access.js';
import { TakesForm, type Form } from '#platform/http/body-kinds.js';
import { isSignedSms, parseSmsArrival, createSmsCallbackUrl } from './sms-callback.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Records a report, but never replaces `delivered`: reports come in any order, also of attempts without a response. A card link
 * that a user has sent again has the attempt that was not delivered in a row of its own, to which later reports of it belong.
 */
const RECORD = {
  name: 'outgoing_messages_arrival',
  text: `update outgoing_messages m set arrival = $3, arrival_code = $4
         from outgoing_messages o
         where o.uuid = $1 and m.channel = 'sms' and m.arrival is distinct from 'delivered'
           and m.id = coalesce(
             (select k.id from outgoing_messages k
              where k.kind = 'card_link' and k.customer_card_id = o.customer_card_id and k.provider_id = $2 limit 1),
             case when o.provider_id is null or o.provider_id = $2 then o.id end)`,
};

/** Receives the reports of the SMS provider, which are authenticated by their signature instead of a token. */
@Controller('sms/status/:message_id')
export class SmsCallbackController {
  constructor(
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  /** Records a report. @throws NotFoundError also for a wrong signature, so that nobody learns which messages exist */
  @Post()
  // The provider does not report again.
  @WorksInMaintenance()
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
