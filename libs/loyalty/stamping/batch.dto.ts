import { ArrayMinSize } from 'class-validator';
import {
  Field,
  IdentifierField,
  IntegerField,
  OneOfField,
  TextField,
  listKind,
} from '#platform/http/fields.js';
import { Dto, FieldsRule } from '#platform/http/dtos.js';
import {
  AnyObjectProperty,
  IntegerProperty,
  ObjectsProperty,
} from '#platform/http/response-fields.js';
import { ActionDetailsDto, MAX_STAMPS } from './customer-card.dto.js';
import { ISSUES } from '#translations/issues.js';

export const MAX_BATCH_OPERATIONS = 100;

const { schema, validators = [] } = listKind(() => BatchOperationDto, MAX_BATCH_OPERATIONS, String);

@Dto('BatchOperation', {
  example: {
    operation: 'stamp',
    code: 'K7QX2M9P',
    stamps: 1,
    external_ref: 'receipt-1002',
  },
})
@FieldsRule<BatchOperationDto>(
  ['customer_card_id', 'code'],
  'customer_card_id',
  (input) => (input.customer_card_id === null) !== (input.code === null),
  ISSUES.code_or_id,
)
@FieldsRule<BatchOperationDto>(
  ['operation', 'stamps'],
  'stamps',
  ({ operation, stamps }) => operation !== 'stamp' || stamps !== null,
  ISSUES.required,
)
@FieldsRule<BatchOperationDto>(
  ['operation', 'reward_id'],
  'reward_id',
  (input) => input.operation !== 'redeem' || input.reward_id !== null,
  ISSUES.required,
)
export class BatchOperationDto extends ActionDetailsDto {
  @OneOfField(['stamp', 'redeem'], { description: 'What to do.' })
  declare readonly operation: 'stamp' | 'redeem';
  @IntegerField({ min: 1, optional: true, description: 'The customer card; or its code.' })
  declare readonly customer_card_id: number | null;
  @TextField({ optional: true, description: 'The code of the customer card; or its id.' })
  declare readonly code: string | null;
  @IntegerField({
    min: 1,
    max: MAX_STAMPS,
    optional: true,
    description: 'Required for stamp: the number of stamps to add.',
  })
  declare readonly stamps: number | null;
  @IntegerField({ min: 1, optional: true, description: 'Required for redeem: the reward.' })
  declare readonly reward_id: number | null;
  @IdentifierField({
    description:
      'A receipt number, which counts once in a store for ever: sent again, alone or in a batch, the same operation gets its first result.',
  })
  declare readonly external_ref: string;
}

@Dto('BatchInput', {
  example: {
    operations: [
      { operation: 'stamp', customer_card_id: 1, stamps: 5, external_ref: 'receipt-1002' },
      { operation: 'redeem', code: 'K7QX2M9P', reward_id: 1, external_ref: 'receipt-1003' },
    ],
  },
})
export class BatchDto {
  @Field(
    {
      schema: { ...schema, minItems: 1 },
      validators: [...validators, ArrayMinSize(1, { context: ISSUES.no_operations })],
    },
    { description: 'What to do, in order.' },
  )
  // Each element is read by itself: an invalid one is refused alone.
  declare readonly operations: unknown[];
}

@Dto('BatchResult')
export class BatchResultJson {
  @IntegerProperty({
    example: 200,
    description: 'The status that the operation would have had as a request of its own.',
  })
  declare readonly status: number;
  @AnyObjectProperty(['ChangedCustomerCard', 'Redemption', 'ErrorResponse'], {
    description: 'The body that it would have had: of a stamping, of a redemption, or of an error.',
  })
  declare readonly body: unknown;
}

@Dto('BatchResults')
export class BatchResultsJson {
  @ObjectsProperty(() => BatchResultJson, {
    description: 'One result for each operation, in the order of the operations.',
  })
  declare readonly results: BatchResultJson[];
}
