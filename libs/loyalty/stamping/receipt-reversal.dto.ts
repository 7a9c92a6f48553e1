import { PUBLIC_ID_PATTERN } from '#platform/kernel/public-id.js';
import { IdentifierField } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { ObjectProperty, TextsProperty } from '#platform/http/response-fields.js';
import { CustomerCardDetailJson, ReverseDto } from './customer-card.dto.js';

@Dto('ReverseReceiptInput', {
  example: { external_ref: 'receipt-1001', reason: 'Stamped the wrong card' },
})
export class ReverseReceiptDto extends ReverseDto {
  @IdentifierField({ description: 'The receipt number' }) declare readonly external_ref: string;
}

@Dto('ReversedReceipt')
export class ReversedReceiptJson {
  @TextsProperty(
    { pattern: PUBLIC_ID_PATTERN, example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3' },
    {
      description:
        'The ids of the events that were reversed: of the stamping, then the redemption.',
    },
  )
  declare readonly reversed: string[];
  @ObjectProperty(() => CustomerCardDetailJson, {
    description:
      'The customer card after it. If the receipt was used on two, the one that was stamped.',
  })
  declare readonly customer_card: CustomerCardDetailJson;
}
