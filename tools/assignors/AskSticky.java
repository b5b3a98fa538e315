import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.*;

/** Asks StickyTaskAssignor of the release on the class path: a question as JSON per line in, an assignment per line out. */
public class AskSticky {
    static final String IN = "org.apache.kafka.coordinator.group.streams.assignor.";
    static final String API = "org.apache.kafka.coordinator.group.api.streams.assignor.";
    static final ObjectMapper JSON = new ObjectMapper();
    static final boolean IS_4_4 = exists(IN + "MemberMetadataAndStateImpl");

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            System.out.write((JSON.writeValueAsString(answer(JSON.readTree(line))) + "\n").getBytes(StandardCharsets.UTF_8));
            System.out.flush();
        }
    }

    static ObjectNode answer(JsonNode asked) throws Exception {
        Map<String, Object> members = new HashMap<>();
        for (JsonNode member : asked.get("members")) members.put(member.get("id").asText(), member(member));
        JsonNode topology = asked.get("topology");
        List<String> subtopologies = new ArrayList<>();
        topology.fieldNames().forEachRemaining(subtopologies::add);
        Collections.sort(subtopologies);
        Class<?> describer = Class.forName((IS_4_4 ? API : IN) + "TopologyDescriber");
        Object described = Proxy.newProxyInstance(describer.getClassLoader(), new Class<?>[] {describer}, (self, method, given) ->
            switch (method.getName()) {
                case "subtopologies" -> subtopologies;
                case "maxNumInputPartitions" -> topology.get((String) given[0]).get("partitions").asInt();
                case "isStateful" -> topology.get((String) given[0]).get("stateful").asBoolean();
                default -> throw new UnsupportedOperationException(method.getName());
            });
        Map<String, String> configs = Map.of("num.standby.replicas", asked.get("config").get("num.standby.replicas").asText());
        Object spec;
        if (IS_4_4) {
            Object parsed = Class.forName(IN + "AssignmentConfigsImpl").getMethod("fromMap", Map.class).invoke(null, configs);
            spec = only(IN + "GroupSpecImpl").newInstance(members, parsed);
        } else {
            spec = only(IN + "GroupSpecImpl").newInstance(members, configs);
        }
        Object assignor = only(IN + "StickyTaskAssignor").newInstance();
        Method assign = Arrays.stream(assignor.getClass().getMethods()).filter(each -> each.getName().equals("assign")).findFirst().get();
        Object assigned = null;
        long best = Long.MAX_VALUE;
        // `repeat` asks the same question again, so that the class is warm: nanoseconds of the fastest run.
        int repeat = asked.has("repeat") ? asked.get("repeat").asInt() : 1;
        for (int run = 0; run < repeat; run++) {
            long start = System.nanoTime();
            assigned = assign.invoke(assignor, spec, described);
            best = Math.min(best, System.nanoTime() - start);
        }
        ObjectNode result = JSON.createObjectNode();
        if (repeat > 1) return result.put("nanoseconds", best);
        Map<?, ?> given = (Map<?, ?>) assigned.getClass().getMethod("members").invoke(assigned);
        for (Object id : new TreeSet<>(given.keySet())) {
            Object member = given.get(id);
            ObjectNode tasks = JSON.createObjectNode();
            for (String role : new String[] {"active", "standby"}) {
                Map<?, ?> held = new TreeMap<>((Map<?, ?>) member.getClass().getMethod(role + "Tasks").invoke(member));
                if (!held.isEmpty()) tasks.set(role, JSON.valueToTree(sorted(held)));
            }
            result.set((String) id, tasks);
        }
        return result;
    }

    static Object member(JsonNode member) throws Exception {
        Map<String, Set<Integer>> active = tasks(member.get("active")), standby = tasks(member.get("standby"));
        String process = member.get("process").asText();
        if (!IS_4_4) {
            return only(IN + "AssignmentMemberSpec").newInstance(
                Optional.empty(), Optional.empty(), active, standby, Map.of(), process, Map.of(), Map.of(), Map.of());
        }
        Map<String, Map<Integer, Long>> offsets = new HashMap<>();
        if (member.has("offsets")) {
            member.get("offsets").fields().forEachRemaining(each -> {
                Map<Integer, Long> numbers = new HashMap<>();
                each.getValue().fields().forEachRemaining(one -> numbers.put(Integer.valueOf(one.getKey()), one.getValue().asLong()));
                offsets.put(each.getKey(), numbers);
            });
        }
        return only(IN + "MemberMetadataAndStateImpl").newInstance(
            Optional.empty(), Optional.empty(), process, Map.of(), active, standby, Map.of(), offsets, Map.of());
    }

    static Map<String, Set<Integer>> tasks(JsonNode listed) {
        Map<String, Set<Integer>> tasks = new HashMap<>();
        if (listed != null) {
            listed.fields().forEachRemaining(each -> {
                Set<Integer> numbers = new HashSet<>();
                each.getValue().forEach(number -> numbers.add(number.asInt()));
                tasks.put(each.getKey(), numbers);
            });
        }
        return tasks;
    }

    static Map<Object, Object> sorted(Map<?, ?> held) {
        Map<Object, Object> result = new TreeMap<>();
        held.forEach((subtopology, numbers) -> result.put(subtopology, new TreeSet<Object>((Collection<?>) numbers)));
        return result;
    }

    static Constructor<?> only(String name) throws Exception {
        Constructor<?> found = Class.forName(name).getDeclaredConstructors()[0];
        found.setAccessible(true);
        return found;
    }

    static boolean exists(String name) {
        try {
            Class.forName(name);
            return true;
        } catch (ClassNotFoundException absent) {
            return false;
        }
    }
}
